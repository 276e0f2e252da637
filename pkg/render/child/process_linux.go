package child

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// programPath is this program, even after its file was replaced.
func programPath() (string, error) { return "/proc/self/exe", nil }

// attributes put a child into its own process group, and end it with the thread that starts it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit waits until a child has exited. Its identifier stays reserved until os.Process.Wait.
func awaitExit(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

// killGroup kills a child before Wait: until then its identifier and its group's are its own.
func killGroup(handle *os.Process) {
	_ = handle.Kill()
	_ = unix.Kill(-handle.Pid, unix.SIGKILL)
}

// widen makes a pipe larger, so that both sides wait less. A smaller one works too.
func widen(pipe *os.File) {
	connection, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = connection.Control(func(descriptor uintptr) {
		_, _ = unix.FcntlInt(descriptor, unix.F_SETPIPE_SZ, pipeBytes)
	})
}
