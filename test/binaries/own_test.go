package binaries

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// checkout is one with a program that says what it was made of, and a cache of its own.
func checkout(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	t.Setenv(CacheVariable, t.TempDir())
	put(t, root, "go.mod", "module example.com/tiny\n\ngo 1.26\n")
	put(t, root, "cmd/tiny/main.go",
		"package main\n\nimport \"example.com/tiny/word\"\n\nvar end string\n\nfunc main() { print(word.Word + end) }\n")
	put(t, root, "cmd/other/main.go", "package main\n\nfunc main() {}\n")
	put(t, root, "word/word.go", "package word\n\nconst Word = \"first\"\n")
	return root
}

func put(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// built gives the program tiny of the checkout, and what it says.
func built(t *testing.T, root string, rest ...string) (info os.FileInfo, says string) {
	t.Helper()
	into := t.TempDir()
	if err := BuildOwn(t.Context(), root, into, rest...); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(into, "tiny")
	output, err := exec.CommandContext(t.Context(), path).CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	if info, err = os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return info, string(output)
}

// TestOwnProgramsAreBuiltOnce holds that a program is built again when, and only when, something that goes into it
// changed. Red when the key lacks flags or files.
func TestOwnProgramsAreBuiltOnce(t *testing.T) {
	root := checkout(t)
	first, says := built(t, root, "./cmd/tiny")
	if says != "first" {
		t.Errorf("it says %q", says)
	}
	for why, rest := range map[string][]string{"once more": {"./cmd/tiny"}, "beside another program": {"./cmd/..."}} {
		if again, _ := built(t, root, rest...); !again.ModTime().Equal(first.ModTime()) {
			t.Errorf("%s: it was built again", why)
		}
	}
	put(t, root, "word/word_test.go", "package word\n")
	put(t, root, "hack/tool/main.go", "package main\n\nfunc main() {}\n")
	if again, _ := built(t, root, "./cmd/tiny"); !again.ModTime().Equal(first.ModTime()) {
		t.Error("a test and a tool changed: it was built again")
	}
	if _, says := built(t, root, "-ldflags", "-X main.end=.", "./cmd/tiny"); says != "first." {
		t.Errorf("with another flag it says %q", says)
	}
	put(t, root, "word/word.go", "package word\n\nconst Word = \"second\"\n")
	if _, says := built(t, root, "./cmd/tiny"); says != "second" {
		t.Errorf("with another content it says %q", says)
	}
	put(t, root, "word/word.go", "package word\n\nconst Word = \"first\"\n")
	if again, says := built(t, root, "./cmd/tiny"); says != "first" || !again.ModTime().Equal(first.ModTime()) {
		t.Errorf("with the content of before it says %q, or was built again", says)
	}
}

// TestAToolIsBuiltAgainWhenItChanges holds that a tool of the checkout is built once, with its progress shown, and again when a file of any
// tool changed. Red when the key of a tool lacks its files.
func TestAToolIsBuiltAgainWhenItChanges(t *testing.T) {
	root := checkout(t)
	for _, test := range []struct {
		why, word string
		isBuilt   bool
	}{{"the first time", "1", true}, {"once more", "1", false}, {"with another content", "2", true}} {
		put(t, root, "hack/tool/main.go", "package main\n\nfunc main() { print("+test.word+") }\n")
		var shown strings.Builder
		into := t.TempDir()
		if err := ShowOwn(t.Context(), &shown, root, into, "./hack/tool"); err != nil {
			t.Fatal(err)
		}
		output, err := exec.CommandContext(t.Context(), filepath.Join(into, "tool")).CombinedOutput()
		if string(output) != test.word || err != nil || strings.Contains(shown.String(), "built hack/tool") != test.isBuilt {
			t.Errorf("%s: it says %q, %v, and shown was %q", test.why, output, err, shown.String())
		}
	}
}

// TestOwnProgramsAreBuiltByOneAtATime holds that all who ask at once get the whole program of one build.
func TestOwnProgramsAreBuiltByOneAtATime(t *testing.T) {
	root := checkout(t)
	var group sync.WaitGroup
	folders := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	for _, into := range folders {
		group.Go(func() {
			if err := BuildOwn(context.Background(), root, into, "./cmd/..."); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	first, err := os.Stat(filepath.Join(folders[0], "tiny"))
	if err != nil {
		t.Fatal(err)
	}
	for _, into := range folders[1:] {
		if info, err := os.Stat(filepath.Join(into, "tiny")); err != nil || !info.ModTime().Equal(first.ModTime()) {
			t.Errorf("it was built twice: %v", err)
		}
	}
}

// TestABuildThatFailsLeavesNothing holds that what could not be built is tried again.
func TestABuildThatFailsLeavesNothing(t *testing.T) {
	root := checkout(t)
	put(t, root, "cmd/tiny/wrong.go", "package main\n\nvar wrong int = \"\"\n")
	err := BuildOwn(t.Context(), root, t.TempDir(), "./cmd/...")
	if err == nil || !strings.Contains(err.Error(), "wrong.go") {
		t.Errorf("a wrong program gives %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.Getenv(CacheVariable), "own", "*", "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	err = BuildOwn(t.Context(), root, t.TempDir(), "./none/...")
	if err == nil || !strings.Contains(err.Error(), "no program") {
		t.Errorf("a pattern without programs gives %v", err)
	}
}

// TestOldOwnProgramsGo holds that those asked for last are kept, and those that a process builds now.
func TestOldOwnProgramsGo(t *testing.T) {
	folder, now := t.TempDir(), time.Now()
	for age, name := range []string{"newest", "newer", "old", "locked"} {
		put(t, folder, name+"/program", "")
		put(t, folder, name+".lock", "")
		used := now.Add(-time.Duration(age) * time.Hour)
		if err := os.Chtimes(filepath.Join(folder, name), used, used); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := lockFile(filepath.Join(folder, "locked.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	removeOldest(folder, 2)
	wanted := map[string]bool{"newest": true, "newer": true, "old": false, "old.lock": false, "locked": true}
	for name, want := range wanted {
		if _, err := os.Stat(filepath.Join(folder, name)); (err == nil) != want {
			t.Errorf("%s is there: %v", name, err == nil)
		}
	}
}

// TestWhatIsNotBuiltSaysHow holds that no test builds what is built by name, and that the error says how it is.
func TestWhatIsNotBuiltSaysHow(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Modules() {
		_, err = FindModule(t.Context(), root, t.TempDir(), name)
		if err == nil || !strings.Contains(err.Error(), "make binaries NEED="+name) {
			t.Errorf("%s gives %v, want how to build it", name, err)
		}
	}
}
