package binaries

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// removeOldest removes the folders in the folder that were asked for the longest ago, but for those that a process
// uses now, until as many are left as are kept. What it can't remove stays.
func removeOldest(folder string, kept int) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	used := map[string]time.Time{}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && entry.IsDir() {
			used[entry.Name()] = info.ModTime()
		}
	}
	names := slices.SortedFunc(maps.Keys(used), func(a, b string) int { return used[b].Compare(used[a]) })
	for _, name := range names[min(kept, len(names)):] {
		path := filepath.Join(folder, name)
		lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			continue
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(path)
			_ = os.Remove(lock.Name())
		}
		_ = lock.Close()
	}
}

// lockFile waits for the lock. A file that its holder before removed is no lock any more, so the path must still
// lead to it.
func lockFile(path string) (*os.File, error) {
	for {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		held, err := file.Stat()
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		if now, err := os.Stat(path); err == nil && os.SameFile(held, now) {
			return file, nil
		}
		_ = file.Close()
	}
}
