package disk

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// RemoveAll removes a folder with everything in it, as os.RemoveAll does, sealed folders too. What links lead to stays.
func RemoveAll(path string) error {
	unseal(path)
	return os.RemoveAll(path)
}

// TempDir is a folder that is removed when the test has ended, as that of testing.TB is, sealed folders too. What writes to it
// is to be ended by a cleanup that is registered after the call: those run before.
func TempDir(t testing.TB) string {
	t.Helper()
	folder := t.TempDir()
	t.Cleanup(func() { unseal(folder) }) // the removal was registered before, so it follows
	return folder
}

// unseal makes a folder and those below writable, each before it is listed. What can't be made so is left to the removal, which tells.
func unseal(path string) {
	_ = filepath.WalkDir(path, func(at string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(at, 0o700)
		}
		return nil
	})
}
