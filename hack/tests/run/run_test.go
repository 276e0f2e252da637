package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// script is a command whose program is a shell.
func script(text string) Command { return Command{Words: []string{"bash", "-c", text}} }

func TestOutputComesByLines(t *testing.T) {
	runner := Runner{Checkout: t.TempDir(), Environment: []string{"A=1"}, Grace: time.Minute}
	if err := os.Mkdir(filepath.Join(runner.Checkout, "inner"), 0o755); err != nil {
		t.Fatal(err)
	}
	command := script(`echo "$A $B $(basename "$PWD")"; echo wrong >&2; printf end`)
	command.Folder, command.Environment = "inner", []string{"B=2"}
	var lines []string
	if err := runner.Run(t.Context(), command, func(line string) { lines = append(lines, line) }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1 2 inner", "wrong", "end"}, lines); diff != "" {
		t.Error(diff)
	}
}

// Red when a command that failed, or that was not there, counts as good.
func TestFailuresAreReported(t *testing.T) {
	runner := Runner{Checkout: t.TempDir(), Grace: time.Minute}
	if err := runner.Run(t.Context(), script("exit 3"), func(line string) { t.Log(line) }); !errors.Is(err, ErrFailed) {
		t.Errorf("a command that failed: %v", err)
	}
	missing := Command{Words: []string{"/no/such/program"}}
	if err := runner.Run(t.Context(), missing, func(string) {}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a command that is not there: %v", err)
	}
}

// A command that is interrupted cleans up, and one that does not listen is killed with all that it started. Red when
// either goes on running.
func TestAnInterruptEndsTheWholeGroup(t *testing.T) {
	for _, test := range []struct {
		why, script, last string
		grace             time.Duration
	}{
		{"it cleans up", `trap 'echo cleaned; exit 1' INT; CHILD; wait`, "cleaned", time.Minute},
		{"it does not listen", `trap '' INT; CHILD; wait`, "", 100 * time.Millisecond},
	} {
		t.Run(test.why, func(t *testing.T) {
			folder := t.TempDir()
			if err := syscall.Mkfifo(filepath.Join(folder, "fifo"), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			// The child ignores the interrupt, so that only the group's end ends it.
			child := `(trap '' INT; exec cat fifo >/dev/null 2>&1) & echo "child $!"`
			text := strings.Replace(test.script, "CHILD", child, 1)
			var pid atomic.Int64
			var last string
			err := Runner{Checkout: folder, Grace: test.grace}.Run(ctx, script(text), func(line string) {
				if text, found := strings.CutPrefix(line, "child "); found {
					number, _ := strconv.Atoi(text)
					pid.Store(int64(number))
					cancel()
					return
				}
				last = line
			})
			if !errors.Is(err, context.Canceled) || last != test.last {
				t.Errorf("it ended with %v, and its last line is %q, want %q", err, last, test.last)
			}
			if state := stateOf(t, int(pid.Load())); state != "" && state != "Z" {
				t.Errorf("its child is in state %q", state)
			}
		})
	}
}

// stateOf is the letter that the kernel has for a process; "" is one that is gone.
func stateOf(t *testing.T, pid int) string {
	t.Helper()
	if pid == 0 {
		t.Fatal("the child did not start")
	}
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return rest[:1]
}

// Processes that a command left behind end with it. Red when they go on running.
func TestWhatACommandLeavesIsEnded(t *testing.T) {
	folder := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(folder, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	var child int
	command := script(`cat fifo >/dev/null 2>&1 & echo $!`)
	err := Runner{Checkout: folder, Grace: time.Minute}.Run(t.Context(), command, func(line string) {
		child, _ = strconv.Atoi(line)
	})
	if err != nil {
		t.Fatal(err)
	}
	if state := stateOf(t, child); state != "" && state != "Z" {
		t.Errorf("what it left is in state %q", state)
	}
}
