package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/test/binaries"
)

// machine is a folder of programs that hack/ready.sh finds and no others.
func machine(t *testing.T, replaced map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{
		"bash", "env", "dirname", "awk", "sort", "head", "mkdir", "mktemp", "rm", "df", "git", "go", "gcc", "printf",
	} {
		script, isReplaced := replaced[name]
		path := filepath.Join(folder, name)
		if isReplaced && script == "" {
			continue // not installed
		}
		if isReplaced {
			if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		found, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(found, path); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestWhatAMachineLacksIsOneLine runs hack/ready.sh on machines that lack something. Red when it is not told in one line with
// what to do, or when a machine that has all is refused.
func TestWhatAMachineLacksIsOneLine(t *testing.T) {
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		why, want   string
		replaced    map[string]string
		environment []string
	}{
		{"it has all", "", nil, nil},
		{"no git", "git is not installed", map[string]string{"git": ""}, nil},
		{"no Go", "install Go 1.", map[string]string{"go": ""}, nil},
		{"no C compiler", "gcc is not installed", map[string]string{"gcc": ""}, nil},
		{"a Go that fetches no other", "Go 1.20.1 is too old", map[string]string{"go": "echo go1.20.1"}, nil},
		{"an old Go that may fetch none", "Go 1.25.0 is too old", map[string]string{"go": "echo go1.25.0"}, []string{"GOTOOLCHAIN=local"}},
		{"a full disk", "has 17 MiB free", map[string]string{"df": "echo head; echo disk 1 1 17 1% /"}, nil},
		{"a cache folder that is a file", "can't be written: make it writable, or name another one (TRELLIS_CACHE", nil, []string{"TRELLIS_CACHE=" + file}},
	} {
		t.Run(test.why, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), filepath.Join(root, "hack", "ready.sh"), "gcc")
			command.Env = append([]string{
				"PATH=" + machine(t, test.replaced), "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir(), "TRELLIS_CACHE=" + t.TempDir(),
				"GOCACHE=" + t.TempDir(), "GOFLAGS=",
			}, test.environment...)
			output, err := command.CombinedOutput()
			refused := err != nil
			if refused != (test.want != "") || !strings.Contains(string(output), test.want) || strings.Count(string(output), "\n") != 1 {
				t.Errorf("%v: %s", err, output)
			}
		})
	}
}
