package fetchtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Folder returns a new folder for content, alone in its parent.
func Folder(t testing.TB) string {
	t.Helper()
	into := filepath.Join(t.TempDir(), "content")
	if err := os.Mkdir(into, 0o700); err != nil {
		t.Fatal(err)
	}
	return into
}

// Files reads a folder back: contents by path below it.
func Files(t testing.TB, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(folder, path)
		found[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
