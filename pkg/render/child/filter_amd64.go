//go:build linux

package child

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_X86_64

// architectureCalls are those that other architectures don't have.
var architectureCalls = []uint32{unix.SYS_EPOLL_WAIT, unix.SYS_POLL, unix.SYS_ARCH_PRCTL}
