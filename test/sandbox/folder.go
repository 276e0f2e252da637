package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/disk"
)

// RunningError says that a sandbox runs in the folder.
type RunningError struct {
	// Folder of the sandbox, and PID of the process that owns it.
	Folder string
	PID    int
}

func (e *RunningError) Error() string {
	return fmt.Sprintf("a sandbox is running in %s, owned by process %[2]d: stop it with `make sandbox-down`, or a demo with `kill %[2]d`",
		e.Folder, e.PID)
}

// ErrNotRunning says that there is no sandbox to end.
var ErrNotRunning = errors.New("no sandbox is running")

func folderOf(folder string) (string, error) {
	if folder != "" {
		return filepath.Abs(folder)
	}
	root, err := binaries.Root()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, ".sandbox"), nil
}

// register takes the folder's lock, removes what an earlier sandbox left and makes the folders anew. What others put among the sources
// stays, and so do flags and ports.
func register(folder string) (*os.File, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("making the sandbox's folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(folder, "pid"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the sandbox's lock: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, &RunningError{Folder: folder, PID: ownerOf(folder)}
	}
	if err := writeOwner(lock); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("writing the sandbox's process id: %w", err)
	}
	sweep(folder, false)
	for _, name := range []string{"bin", "kubeconfigs", "logs", "pods"} {
		if err := os.MkdirAll(filepath.Join(folder, name), 0o700); err != nil {
			return nil, fmt.Errorf("making the sandbox's folder: %w", err)
		}
	}
	return lock, nil
}

func writeOwner(lock *os.File) error {
	if err := lock.Truncate(0); err != nil {
		return err
	}
	_, err := lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// deregister removes the folder and lets go of the lock last.
func (s *Sandbox) deregister(keepLogs bool) {
	sweep(s.Folder, keepLogs)
	_ = os.Remove(s.path("pid"))
	_ = os.Remove(s.Folder) // fails where something stays, as it should
	_ = s.lock.Close()
}

// sweep removes everything that a sandbox makes, except the lock and the ports.
func sweep(folder string, keepLogs bool) {
	for _, name := range []string{
		"ready", "env", "ca.crt", "bin", "kubeconfigs", "pods", "web", "controlplanes", "controlplanes.lock",
	} {
		_ = disk.RemoveAll(filepath.Join(folder, name))
	}
	for _, repository := range append(slices.Collect(maps.Keys(repositories())), catalogueRepository) {
		_ = disk.RemoveAll(filepath.Join(folder, "sources", "git", repository+".git"))
	}
	for _, archive := range sampleArchives() {
		_ = os.Remove(filepath.Join(folder, "sources", "charts", archive))
	}
	for _, name := range []string{"sources/git", "sources/charts", "sources/registry", "sources"} {
		_ = os.Remove(filepath.Join(folder, name)) // only when empty
	}
	if !keepLogs {
		_ = disk.RemoveAll(filepath.Join(folder, "logs"))
	}
}

// ownerOf reads the process id that occupy wrote; 0 when there is none yet.
func ownerOf(folder string) int {
	content, err := os.ReadFile(filepath.Join(folder, "pid"))
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(content)))
	return pid
}

// Down ends the sandbox that runs in the folder ("" as in Options) and waits until it has cleaned up. The lock tells a
// running sandbox from one that was killed, so a process id that belongs to somebody else by now gets no signal; what a
// killed one left is removed.
func Down(ctx context.Context, folder string) error {
	folder, err := folderOf(folder)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(folder, "pid")); err != nil {
		return ErrNotRunning
	}
	lock, err := register(folder)
	var running *RunningError
	if err == nil {
		(&Sandbox{Folder: folder, lock: lock}).deregister(false)
		return ErrNotRunning
	}
	if !errors.As(err, &running) || running.PID <= 1 {
		return err
	}
	if err := syscall.Kill(running.PID, syscall.SIGTERM); err != nil {
		return fmt.Errorf("ending process %d: %w", running.PID, err)
	}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return !locked(filepath.Join(folder, "pid")), nil
	})
}

func locked(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}
