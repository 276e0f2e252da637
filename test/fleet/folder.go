package fleet

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/trellis-addons/trellis/test/disk"
)

// folder is a fleet's place on disk. A lock beside it, held while the owner lives, distinguishes it from an abandoned
// one; the kernel releases the lock when the owner dies.
type folder struct {
	path string
	lock *os.File
}

const lockSuffix = ".lock"

// prefix is that of the paths of folders without an explicit name; one per user, since only the owner can remove
// them.
func prefix() string {
	return filepath.Join(os.TempDir(), "trellis-fleet-"+strconv.Itoa(os.Getuid())+"-")
}

// claim creates a folder and takes its lock; before that it removes the folders of killed owners.
func claim(path string) (*folder, error) {
	if path != "" {
		return claimPath(path)
	}
	sweep(prefix())
	var failed error
	for range claims {
		made, err := claimPath(prefix() + rand.Text()[:8])
		if err == nil {
			return made, nil
		}
		failed = err
	}
	return nil, failed
}

// claims is the number of names to try: the sweep of another fleet may take a lock between its creation and its
// locking.
const claims = 5

func claimPath(path string) (*folder, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the fleet's folder: %w", err)
	}
	lock, err := tryLock(path + lockSuffix)
	if err != nil {
		return nil, fmt.Errorf("the fleet's folder %q is in use: %w", path, err)
	}
	if err := disk.RemoveAll(path); err != nil {
		return nil, fmt.Errorf("emptying the fleet's folder: %w", err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return nil, fmt.Errorf("making the fleet's folder: %w", err)
	}
	return &folder{path: path, lock: lock}, nil
}

func (f *folder) release() {
	_ = disk.RemoveAll(f.path)
	_ = os.Remove(f.lock.Name())
	_ = f.lock.Close()
}

// sweep removes folders whose owner is dead.
func sweep(prefix string) {
	locks, _ := filepath.Glob(prefix + "*" + lockSuffix)
	for _, name := range locks {
		lock, err := tryLock(name)
		if err != nil {
			continue
		}
		(&folder{path: strings.TrimSuffix(name, lockSuffix), lock: lock}).release()
	}
}

var errMoved = errors.New("the lock was removed meanwhile")

// tryLock takes the lock without waiting. A lock file that another process removed between opening and locking is not
// valid, so the path must still lead to the locked file.
func tryLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, err
	}
	held, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	if now, err := os.Stat(path); err != nil || !os.SameFile(held, now) {
		_ = file.Close()
		return nil, errMoved
	}
	return file, nil
}
