//go:build !linux

package child

import (
	"os"
	"syscall"
	"time"
)

func programPath() (string, error) { return os.Executable() }

func attributes() *syscall.SysProcAttr { return nil }

// awaitExit does nothing: os.Process knows whether its process has exited.
func awaitExit(int) {}

func killGroup(handle *os.Process) { _ = handle.Kill() }

func widen(*os.File) {}

// usage is unknown on systems without production use: only the wall clock limits a child there.
type usage struct{}

func openUsage(int) usage { return usage{} }

func (usage) close() {}

func (usage) now() (int64, time.Duration, bool) { return 0, 0, false }
