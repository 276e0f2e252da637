package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trellis-addons/trellis/hack/tests/results"
	"github.com/trellis-addons/trellis/hack/tests/run"
	"github.com/trellis-addons/trellis/hack/tests/suite"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/long"
)

// grace is how long tests may take to stop their API servers after an interrupt.
const grace = 30 * time.Second

// session is one run: it starts the calls of go test that were planned and collects the ends of packages.
type session struct {
	checkout string
	// commit is what is checked out as the run begins, look tells what it is now.
	commit commit
	look   func(context.Context) commit
	out    io.Writer
	// events takes the JSON of go test; nil: go test prints text.
	events io.Writer
	ended  []results.Package
	failed bool
	// everyTest runs also the tests that this commit leaves to others (test/long).
	everyTest bool
}

// newSession is for the checkout that this process runs in.
func newSession(ctx context.Context) (*session, error) {
	root, err := binaries.Root()
	if err != nil {
		return nil, err
	}
	look := func(ctx context.Context) commit { return commitOf(ctx, root) }
	return &session{checkout: root, commit: look(ctx), look: look, out: os.Stdout}, nil
}

// keepEvents has the JSON of all that runs appended to a file; "" names none.
func (s *session) keepEvents(name string) (closed func() error, err error) {
	if name == "" {
		return func() error { return nil }, nil
	}
	if full, err := filepath.Abs(name); err != nil {
		return nil, err
	} else if below, err := filepath.Rel(s.checkout, full); err == nil && filepath.IsLocal(below) &&
		!strings.HasPrefix(below, "bin/") && !strings.HasPrefix(below, ".cache/") {
		return nil, fmt.Errorf("%s is in the checkout, and would change what is tested: write to bin/%s", name, filepath.Base(name))
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	s.events = file
	return file.Close, nil
}

// errTests is the end of a run in which a test failed; go test's output says which.
var errTests = errors.New("some tests failed")

// call runs one call of go test. A test that fails is noted, and the error is nil.
func (s *session) call(ctx context.Context, call suite.Invocation) error {
	words := call.Command()
	if s.events != nil {
		words = append(words[:2:2], append([]string{"-json"}, words[2:]...)...)
	}
	return s.run(ctx, run.Command{Words: words, Folder: call.Root, Environment: call.Environment()})
}

func (s *session) run(ctx context.Context, command run.Command) error {
	runner := run.Runner{Checkout: s.checkout, Grace: grace}
	if !s.everyTest {
		runner.Environment = []string{long.RotationVariable + "=" + s.rotation()}
	}
	if os.Getenv("GOFLAGS") == "" {
		runner.Environment = append(runner.Environment, "GOFLAGS="+binaries.CompileFlags) // as the Makefile exports
	}
	var report results.Report
	err := runner.Run(ctx, command, func(line string) {
		if s.events == nil {
			s.show(line + "\n")
			return
		}
		fmt.Fprintln(s.events, line)
		s.show(report.Add(line))
	})
	s.show(report.Rest())
	if errors.Is(err, run.ErrFailed) {
		if err != run.ErrFailed { //nolint:errorlint // it says more than that tests failed
			fmt.Fprintln(s.out, "tests:", err)
		}
		s.failed = true
		return nil
	}
	return err
}

// rotation is the commit's, or the one that is asked for.
func (s *session) rotation() string {
	return cmp.Or(os.Getenv(long.RotationVariable), s.commit.rotation())
}

// show prints text and notes which packages end in it.
func (s *session) show(text string) {
	if text == "" {
		return
	}
	fmt.Fprint(s.out, text)
	for line := range strings.Lines(text) {
		if one, found := results.Line(strings.TrimSuffix(line, "\n")); found {
			s.ended = append(s.ended, one)
		}
	}
}

// verdict is the end of the run. It prints what failed last, where a reader looks first.
func (s *session) verdict() error {
	if !s.failed {
		return nil
	}
	var failed []string
	for _, one := range s.ended {
		if one.State == results.Failed {
			failed = append(failed, folderOf(one.Path))
		}
	}
	slices.Sort(failed)
	failed = slices.Compact(failed) // a package's heavy tests ran in a call of their own
	if len(failed) == 0 {
		return errTests
	}
	return fmt.Errorf("%w, in %s", errTests, strings.Join(failed, ", "))
}

// folderOf is the folder of a package below the checkout.
func folderOf(path string) string { return strings.TrimPrefix(path, suite.Module+"/") }

// seconds are the times of packages that ran and passed.
func (s *session) seconds() suite.Seconds {
	found := suite.Seconds{}
	for _, one := range s.ended {
		if one.State == results.Passed {
			found[folderOf(one.Path)] += one.Seconds // its heavy tests ran in a call of their own
		}
	}
	return found
}

// cache is a folder below that of built programs.
func cache(name string) (string, error) {
	folder, err := binaries.Cache()
	return filepath.Join(folder, name), err
}
