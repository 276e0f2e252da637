//go:build linux

package child

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_AARCH64

// architectureCalls are those that other architectures don't have.
var architectureCalls []uint32
