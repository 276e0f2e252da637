//go:build amd64 || arm64

package entry

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// devices of this machine that every container has.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// Become has the process, which is in namespaces of its own and may mount, become the program. It returns only if it can't, or has tried
// the way of one without a program.
func (c Container) Become() error {
	runtime.LockOSThread() // what is given up is the thread's, and the next program's
	if err := c.layOut(); err != nil {
		return err
	}
	if err := c.moveIn(); err != nil {
		return err
	}
	if err := Confine(); err != nil {
		return err
	}
	if len(c.Arguments) == 0 {
		return nil
	}
	// What whoever started it has open is not the container's.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("closing what was open: %w", err)
	}
	return fmt.Errorf("starting %q: %w", c.Arguments[0], unix.Exec(c.Arguments[0], c.Arguments, c.Environment))
}

// layOut makes the root with everything in it.
func (c Container) layOut() error {
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("root", c.Root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=1m,mode=0755"); err != nil {
		return fmt.Errorf("mounting the root: %w", err)
	}
	for _, device := range devices {
		if err := c.bind(Mount{From: device, To: device, IsWritable: true}, 0); err != nil {
			return err
		}
	}
	if err := c.bind(Mount{From: "/proc", To: "/proc", IsWritable: true}, unix.MS_REC); err != nil {
		return err
	}
	if err := c.guardProc(); err != nil {
		return err
	}
	for _, mount := range c.Mounts {
		if err := c.bind(mount, 0); err != nil {
			return err
		}
	}
	if c.IsWritable {
		return nil
	}
	return readOnly(c.Root)
}

// guardProc makes read-only what of /proc is the machine's own, as container runtimes do: root may write there.
func (c Container) guardProc() error {
	for _, of := range []string{"bus", "fs", "irq", "sys", "sysrq-trigger"} {
		at := filepath.Join(c.Root, "proc", of)
		if _, err := os.Stat(at); err != nil {
			continue // not every kernel has all
		}
		if err := unix.Mount(at, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("mounting /proc/%s: %w", of, err)
		}
		if err := readOnly(at); err != nil {
			return err
		}
	}
	return nil
}

// bind puts a mount where it belongs.
func (c Container) bind(mount Mount, flags uintptr) error {
	at := filepath.Join(c.Root, mount.To)
	if err := place(mount.From, at); err != nil {
		return fmt.Errorf("making a place for %q: %w", mount.To, err)
	}
	if err := unix.Mount(mount.From, at, "", unix.MS_BIND|flags, ""); err != nil {
		return fmt.Errorf("mounting %q: %w", mount.To, err)
	}
	if mount.IsWritable {
		return nil
	}
	return readOnly(at)
}

// place makes a folder, or an empty file, to mount one on.
func place(from, at string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.MkdirAll(at, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return os.WriteFile(at, nil, 0o644)
}

func readOnly(at string) error {
	if err := unix.MountSetattr(unix.AT_FDCWD, at, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("making %q read-only: %w", at, err)
	}
	return nil
}

// moveIn has the root be that of the process, and nothing of this machine's left.
func (c Container) moveIn() error {
	if err := unix.Chdir(c.Root); err != nil {
		return fmt.Errorf("entering the root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil { // the old root is above the new one until it is taken off
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the machine's root: %w", err)
	}
	return unix.Chdir("/")
}
