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

// folder is a fleet's place on disk. A lock beside it, held while the owner lives, tells it from one left behind; the
// kernel lets go of the lock when the owner dies.
type folder struct {
	path string
	lock *os.File
}

const lockSuffix = ".lock"

// prefix begins the paths of folders without a name of their own; one per user, since only the owner can remove them.
func prefix() string {
	return filepath.Join(os.TempDir(), "trellis-fleet-"+strconv.Itoa(os.Getuid())+"-")
}

// claim makes a folder and takes its lock; before that it removes what killed owners left.
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

// claims are how many names are tried: between the making of a lock and taking it, the sweep of another fleet that starts may take it.
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

// tryLock takes the lock without waiting. A lock file that another process removed between opening and locking counts
// for nobody, so the path must still lead to the locked file.
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
