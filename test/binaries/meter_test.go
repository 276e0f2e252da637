package binaries

import (
	"context"
	"os/exec"
	"strings"
	"testing"
)

// TestCompileSaysWhatItDoes compiles a small program with a fresh build cache. Red when the first line does not come before
// the work, when packages are not counted, or when the program is not named.
func TestCompileSaysWhatItDoes(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	builds, into := t.TempDir(), t.TempDir()
	var out strings.Builder
	err = Compile(t.Context(), &out, Compilation{
		Names: []string{"enter"}, Packages: []string{"./test/pod/enter"},
		Command: func(ctx context.Context, arguments ...string) *exec.Cmd {
			command := goCommand(ctx, root, arguments...)
			command.Env = append(command.Env, "GOCACHE="+builds)
			return command
		},
		Build: []string{"build", "-v", "-o", into + "/", "./test/pod/enter"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.HasPrefix(text, "enter: looking for packages to compile, 0s\n") || !strings.Contains(text, "built enter in ") {
		t.Errorf("the progress is %q", text)
	}
}

// TestAFailedBuildShowsItsLastLines: red when the compiler's message is lost.
func TestAFailedBuildShowsItsLastLines(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = Compile(t.Context(), &out, Compilation{
		Names: []string{"nothing"}, Packages: []string{"./test/none"},
		Command: func(ctx context.Context, arguments ...string) *exec.Cmd { return goCommand(ctx, root, arguments...) },
		Build:   []string{"build", "-v", "./test/none"},
	})
	if err == nil || !strings.Contains(err.Error(), "nothing") || !strings.Contains(err.Error(), "test/none") {
		t.Errorf("a failed build says %v", err)
	}
}
