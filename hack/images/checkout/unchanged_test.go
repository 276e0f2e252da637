package checkout

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Red when an edit, a new file or a new commit since a checkout was named passes for what was named.
func TestACheckoutThatChangedSinceIsDistinguished(t *testing.T) {
	folder := t.TempDir()
	git := func(arguments ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", append([]string{"-C", folder, "-c", "user.name=a", "-c", "user.email=a@b"}, arguments...)...)
		command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", arguments, err, output)
		}
	}
	git("init", "--quiet")
	git("commit", "--quiet", "--allow-empty", "-m", "One")
	stamp, err := Read(t.Context(), folder, "1.2.3", "0")
	if err != nil {
		t.Fatal(err)
	}
	if err := stamp.Unchanged(t.Context(), folder, "1.2.3", "0"); err != nil {
		t.Errorf("a checkout that nobody touched: %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := stamp.Unchanged(t.Context(), folder, "1.2.3", "0"); err == nil || !strings.Contains(err.Error(), "1.2.3-dirty") {
		t.Errorf("a checkout that was edited: %v", err)
	}
	git("add", "new")
	git("commit", "--quiet", "-m", "Two")
	if err := stamp.Unchanged(t.Context(), folder, "1.2.3", "0"); err == nil || !strings.Contains(err.Error(), stamp.Commit) {
		t.Errorf("another commit of the same version: %v", err)
	}
}
