package clusterctl

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/trellis-addons/trellis/test/binaries"
)

// The releases of the test, and the folder of the provider, by the name that clusterctl gives it.
const (
	version, next = "1.2.3", "1.3.0"
	provider      = "addon-trellis"
)

// program is what both managers are in the releases of the test, for the sake of minutes.
const program = "package main\n\nimport \"example.com/tiny/pkg/base/buildinfo\"\n\nfunc main() { println(buildinfo.Text()) }\n"

// releases writes both, as a repository of clusterctl's, and gives its folder: what is between it and the files is addon-trellis/v1.2.3.
func releases(t *testing.T) string {
	t.Helper()
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	folder, checkout := t.TempDir(), checkout(t, root)
	command := filepath.Join(t.TempDir(), "release")
	execute(t, "go", "build", "-C", root, "-o", command, "./hack/release")
	for _, one := range []string{version, next} {
		out := filepath.Join(folder, provider)
		execute(t, command, "-module", checkout, "-out", out, "-platforms", "linux/amd64", "-version", "v"+one)
		if err := os.Rename(filepath.Join(out, one), filepath.Join(out, "v"+one)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// checkout makes one with the charts and folders of this one, and small programs.
func checkout(t *testing.T, root string) string {
	t.Helper()
	folder := t.TempDir()
	for _, one := range []string{"charts", "deploy"} {
		if err := os.CopyFS(filepath.Join(folder, one), os.DirFS(filepath.Join(root, one))); err != nil {
			t.Fatal(err)
		}
	}
	for file, text := range map[string]string{
		"CHANGELOG.md":                          fmt.Sprintf("# Changelog\n\n## %s\n\n- One.\n\n## %s\n\n- Another.\n", next, version),
		"go.mod":                                "module example.com/tiny\n\ngo 1.26.6\n\ntoolchain " + runtime.Version() + "\n",
		"cmd/master-controller-manager/main.go": program,
		"cmd/seed-controller-manager/main.go":   program,
		"cmd/trellis-web/main.go":               program,
		"cmd/kubectl-addons/main.go":            program,
		"LICENSE":                               "Apache License 2.0\n",
		"pkg/base/buildinfo/buildinfo.go": "package buildinfo\n\nvar version, commit, date string\n\n" +
			"func Text() string { return version + \" \" + commit + \" \" + date }\n",
	} {
		write(t, filepath.Join(folder, file), text)
	}
	for _, arguments := range [][]string{{"init", "--quiet"}, {"add", "."}, {"commit", "--quiet", "-m", "One"}} {
		execute(t, "git", append([]string{"-C", folder, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgSign=false"}, arguments...)...)
	}
	return folder
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func execute(t *testing.T, name string, arguments ...string) {
	t.Helper()
	if output, err := exec.CommandContext(t.Context(), name, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, arguments, err, output)
	}
}
