package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/test/disk"
)

// TestSecondSandbox holds that a folder has one sandbox at a time, and that the second hears who has it.
func TestSecondSandbox(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "box")
	lock, err := register(folder)
	if err != nil {
		t.Fatal(err)
	}
	var running *RunningError
	if _, err := register(folder); !errors.As(err, &running) || running.PID != os.Getpid() {
		t.Errorf("a second sandbox gets %v, want a RunningError with process %d", err, os.Getpid())
	}
	first := &Sandbox{Folder: folder, lock: lock}
	first.deregister(false)
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
	lock, err = register(folder)
	if err != nil {
		t.Fatalf("after the end of the first: %v", err)
	}
	(&Sandbox{Folder: folder, lock: lock}).deregister(false)
}

// TestWhatStays holds which files outlive a sandbox: what somebody else put among the sources, and on request the logs.
func TestWhatStays(t *testing.T) {
	foreign := []string{"flags", "ports", "sources/charts/mine-1.0.0.tgz", "sources/git/mine.git/HEAD", "sources/registry/manifests"}
	own := []string{
		"ca.crt", "env", "ready", "kubeconfigs/master.yaml", "controlplanes/etcd/data",
		"sources/git/samples.git/HEAD", "sources/git/catalogue.git/HEAD", "sources/charts/web-1.0.0.tgz",
	}
	for _, test := range []struct {
		why      string
		files    []string
		keepLogs bool
		stays    []string
	}{
		{"nothing of its own", own, false, nil},
		{"what others put there", append(foreign, own...), false, foreign},
		{"the logs of a failed start", append([]string{"logs/etcd.log"}, own...), true, []string{"logs/etcd.log"}},
	} {
		t.Run(test.why, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "box")
			lock, err := register(folder)
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range test.files {
				write(t, filepath.Join(folder, file))
			}
			(&Sandbox{Folder: folder, lock: lock}).deregister(test.keepLogs)
			if diff := cmp.Diff(test.stays, filesIn(t, folder)); diff != "" {
				t.Errorf("files that stay (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDownWithoutSandbox holds that Down signals nobody when the owner is dead, and clears what it left.
func TestDownWithoutSandbox(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "box")
	if err := Down(t.Context(), folder); !errors.Is(err, ErrNotRunning) {
		t.Errorf("without a folder: %v", err)
	}
	write(t, filepath.Join(folder, "kubeconfigs", "master.yaml"))
	// The process id in a dead sandbox's file may be anybody's by now.
	if err := os.WriteFile(filepath.Join(folder, "pid"), []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Down(t.Context(), folder); !errors.Is(err, ErrNotRunning) {
		t.Errorf("with a dead owner: %v", err)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("a dead sandbox's folder is still there: %v", err)
	}
}

// Red, for whoever is not root, when what the managers' stores sealed stays: the next sandbox would begin with it.
func TestSealedContentOfAKilledSandboxGoes(t *testing.T) {
	folder := filepath.Join(disk.TempDir(t), "box")
	content := filepath.Join(folder, "pods", "seed", "store", "content", "digest")
	write(t, filepath.Join(content, "Chart.yaml"))
	if err := os.Chmod(content, 0o500); err != nil {
		t.Fatal(err)
	}
	lock, err := register(folder)
	if err != nil {
		t.Fatal(err)
	}
	if files := filesIn(t, filepath.Join(folder, "pods")); files != nil {
		t.Errorf("the next sandbox finds %v", files)
	}
	(&Sandbox{Folder: folder, lock: lock}).deregister(false)
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func filesIn(t *testing.T, folder string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(folder, path)
		files = append(files, relative)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
