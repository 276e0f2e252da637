package child

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// programPath is this very program, also after the file it was started from has been replaced.
func programPath() (string, error) { return "/proc/self/exe", nil }

// attributes put a child into a group of its own, and end it with the thread that starts it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit returns when a child has exited, and leaves its identifier taken: it is free only after os.Process.Wait.
func awaitExit(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

// killGroup kills a child that was not waited for: until then its own identifier is not free, nor is its group's.
func killGroup(handle *os.Process) {
	_ = handle.Kill()
	_ = unix.Kill(-handle.Pid, unix.SIGKILL)
}

// widen makes room in a pipe, so that both sides wait for each other less often. A smaller one works as well.
func widen(pipe *os.File) {
	connection, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = connection.Control(func(descriptor uintptr) {
		_, _ = unix.FcntlInt(descriptor, unix.F_SETPIPE_SZ, pipeBytes)
	})
}
