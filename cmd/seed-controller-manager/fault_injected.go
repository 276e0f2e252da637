//go:build faults

package main

import (
	"context"
	"os"
	"syscall"
)

// faultVariable names the fault point at which a manager built with tag "faults" ends itself.
const faultVariable = "TRELLIS_FAULT_POINT"

// faultPoint ends the process as kill -9 does, at the named point of a pass.
func faultPoint(_ context.Context, name string) {
	if name == os.Getenv(faultVariable) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // nothing runs on past this point while the signal is under way
	}
}
