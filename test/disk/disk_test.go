package disk_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/trellis-addons/trellis/test/disk"
)

// sealed puts into a folder what a store has, and a link out of it to a sealed folder, whose path it gives.
func sealed(t *testing.T, folder string) (beside string) {
	t.Helper()
	beside = t.TempDir()
	inner := filepath.Join(folder, "content", "digest", "charts")
	if err := os.MkdirAll(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(inner, "Chart.yaml"), []byte("name: one\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(beside, filepath.Join(inner, "link")); err != nil {
		t.Fatal(err)
	}
	for _, each := range []string{inner, filepath.Dir(inner), beside} {
		if err := os.Chmod(each, 0o500); err != nil {
			t.Fatal(err)
		}
	}
	return beside
}

// modeOf a folder that is there.
func modeOf(t *testing.T, folder string) fs.FileMode {
	t.Helper()
	found, err := os.Stat(folder)
	if err != nil {
		t.Fatal(err)
	}
	return found.Mode().Perm()
}

// Red when sealed folders stay, for whoever is not root, or when a link is followed, for everyone.
func TestRemoveAllRemovesSealedFolders(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "store")
	beside := sealed(t, folder)
	if err := disk.RemoveAll(folder); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	if mode := modeOf(t, beside); mode != 0o500 {
		t.Errorf("what a link leads to has mode %o", mode)
	}
}

// Red when what is no longer there is an error: whoever removes twice would be told of it.
func TestRemoveAllIsContentWithNothing(t *testing.T) {
	if err := disk.RemoveAll(filepath.Join(t.TempDir(), "none")); err != nil {
		t.Error(err)
	}
}

// Red when folders are still sealed as the test's own removal comes, or writable before what writes to them was ended.
func TestTempDirIsUnsealedBetweenTheEndOfWritersAndItsRemoval(t *testing.T) {
	var folder, inner string
	t.Run("inside", func(t *testing.T) {
		t.TempDir() // registers the removal of all folders of the test
		t.Cleanup(func() {
			if mode := modeOf(t, inner); mode != 0o700 {
				t.Errorf("at its removal the folder has mode %o", mode)
			}
		})
		folder = disk.TempDir(t)
		inner = filepath.Join(folder, "content", "digest", "charts")
		sealed(t, folder)
		t.Cleanup(func() {
			if mode := modeOf(t, inner); mode != 0o500 {
				t.Errorf("at the end of writers the folder has mode %o", mode)
			}
		})
	})
	if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}
