//go:build linux && (amd64 || arm64)

package child

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// allowed are the system calls of a Go program that computes and uses open pipes. All others fail with EPERM: it
// can't open a file or socket, start a program or signal another process.
var allowed = append([]uint32{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_CLOSE, unix.SYS_FCNTL, unix.SYS_PIPE2,
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2, unix.SYS_PPOLL,
	unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MPROTECT, unix.SYS_MADVISE, unix.SYS_BRK, unix.SYS_MINCORE,
	unix.SYS_FUTEX, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_MEMBARRIER,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL,
	unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_GETTIMEOFDAY,
	unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_GETRUSAGE, unix.SYS_GETRANDOM, unix.SYS_PRCTL, unix.SYS_UNAME,
	unix.SYS_TIMER_CREATE, unix.SYS_TIMER_SETTIME, unix.SYS_TIMER_DELETE,
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
}, architectureCalls...)

// Offsets in a filter's view of a call (struct seccomp_data).
const (
	offsetCall         = 0
	offsetArchitecture = 4
	offsetArguments    = 16
)

const (
	refuse   = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	notThere = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	otherABI = 0x40000000 // bit of x86's second set of system calls
)

// filter is the kernel's program that allows or refuses each system call.
func filter(process int) []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	jump := func(test uint16, value uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, Jt: yes, Jf: no, K: value}
	}
	give := func(verdict uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
	}
	program := []unix.SockFilter{
		load(offsetArchitecture),
		jump(unix.BPF_JEQ, architecture, 1, 0), give(unix.SECCOMP_RET_KILL_PROCESS),
		load(offsetCall),
		jump(unix.BPF_JGE, otherABI, 0, 1), give(refuse),
		// A filter can't see the flags of clone3; without it libraries use clone.
		jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), give(notThere),
		// Threads, but no processes.
		jump(unix.BPF_JEQ, unix.SYS_CLONE, 0, 4),
		load(offsetArguments),
		jump(unix.BPF_JSET, unix.CLONE_THREAD, 0, 1), give(unix.SECCOMP_RET_ALLOW), give(refuse),
		// Signals to its own threads, which is how the Go runtime interrupts them.
		jump(unix.BPF_JEQ, unix.SYS_TGKILL, 0, 4),
		load(offsetArguments),
		jump(unix.BPF_JEQ, uint32(process), 0, 1), give(unix.SECCOMP_RET_ALLOW), give(refuse),
	}
	for at, call := range allowed {
		program = append(program, jump(unix.BPF_JEQ, call, uint8(len(allowed)-at), 0))
	}
	return append(program, give(refuse), give(unix.SECCOMP_RET_ALLOW))
}

// filterSystemCalls installs the filter for all threads, permanently.
func filterSystemCalls() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	program := filter(unix.Getpid())
	loaded := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	thread, _, failed := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&loaded)))
	runtime.KeepAlive(program)
	if failed != 0 {
		return fmt.Errorf("filtering system calls: %w", failed)
	}
	if thread != 0 {
		return errThreads
	}
	return nil
}

var errThreads = errors.New("filtering system calls: a thread is under another filter")
