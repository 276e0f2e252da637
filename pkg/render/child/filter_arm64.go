//go:build linux

package child

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_AARCH64

// architectureCalls are those that other architectures have not.
var architectureCalls []uint32
