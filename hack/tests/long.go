package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/trellis-addons/trellis/hack/tests/parts"
	"github.com/trellis-addons/trellis/hack/tests/suite"
)

// recordFolder is where it is noted, below the cache folder, which parts passed on which commit.
const recordFolder = "long"

// runLong runs parts: all that did not pass on this commit yet, a tenth of them, or one that is named.
func runLong(ctx context.Context, arguments []string) (err error) {
	flags := flag.NewFlagSet("tests long", flag.ExitOnError)
	list := flags.Bool("list", false, "list the parts, and when each passed")
	name := flags.String("part", "", "names or patterns with commas: run these alone; arguments after one are its tests'")
	tenth := flags.String("tenth", "", "run a tenth of all parts: its number, or \"commit\" for the one whose turn it is")
	within := flags.Duration("within", 0,
		"time limit for all parts together; parts that exceed it are stopped and reported, and do not fail the run; 0: none")
	events := flags.String("json", "", "file that the JSON of go test is appended to")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	s, err := newSession(ctx)
	if err != nil {
		return err
	}
	folder, err := cache(recordFolder)
	if err != nil {
		return err
	}
	record := parts.Record{Folder: folder}
	if *list {
		if *name != "" || *tenth != "" || flags.NArg() > 0 {
			return errors.New("-list takes no part, tenth or arguments")
		}
		return s.list(record)
	}
	chosen, err := s.choose(*name, *tenth)
	if err != nil {
		return err
	}
	if len(flags.Args()) > 0 && len(chosen) != 1 {
		return errors.New("arguments are for the tests of one part: name it")
	}
	closed, err := s.keepEvents(*events)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closed()) }()
	return s.runParts(ctx, chosen, record, asked{again: *name != "", within: *within, arguments: flags.Args()})
}

// asked is how parts are to run.
type asked struct {
	// again has those run too that passed on this commit.
	again bool
	// within is the time for all parts together; 0: as long as they take.
	within time.Duration
	// arguments are handed to the tests.
	arguments []string
}

// limited is a context that ends when the time is over.
func (a asked) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.within == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, a.within)
}

// choose gives the parts that were asked for, those that are named by one or the other.
func (s *session) choose(name, tenth string) ([]parts.Part, error) {
	switch {
	case name != "" && tenth != "":
		return nil, errors.New("a part or a tenth, not both")
	case name != "":
		return parts.Named(name)
	case tenth == "commit":
		number := parts.TenthOf(s.rotation())
		fmt.Fprintf(s.out, "tenth %d has its turn at %s: make test-long TENTH=%d runs it again\n", number, s.commit, number)
		return parts.Tenths(parts.Parts())[number], nil
	case tenth != "":
		number, err := strconv.Atoi(tenth)
		if err != nil || number < 0 || number > 9 {
			return nil, fmt.Errorf("tenth %q is no number from 0 to 9", tenth)
		}
		return parts.Tenths(parts.Parts())[number], nil
	default:
		return parts.Parts(), nil
	}
}

// state says in a few words when a part passed.
func (s *session) state(record parts.Record, part parts.Part) (line string, isDone bool, err error) {
	last, found, err := record.Last(part.Name, s.commit.hash)
	switch {
	case err != nil:
		return "", false, err
	case !found:
		return "never passed here", false, nil
	case last.Commit == s.commit.hash && !s.commit.isDirty:
		return fmt.Sprintf("passed on this commit in %s", last.Took), true, nil
	default:
		return fmt.Sprintf("passed on %.12s, %s", last.Commit, last.When.Format(time.DateOnly)), false, nil
	}
}

func (s *session) list(record parts.Record) error {
	line := func(tenth string, part parts.Part) error {
		state, _, err := s.state(record, part)
		if err != nil {
			return err
		}
		fmt.Fprintf(s.out, "%-17s %5s %4d  %s: %s\n", part.Name, tenth, part.Minutes, state, part.Why)
		return nil
	}
	fmt.Fprintf(s.out, "%-17s %5s %4s  %s\n", "PART", "TENTH", "MIN", "AT "+s.commit.String())
	for i, tenth := range parts.Tenths(parts.Parts()) {
		for _, part := range tenth {
			if err := line(strconv.Itoa(i), part); err != nil {
				return err
			}
		}
	}
	for _, part := range parts.Parts() {
		if part.Apart == "" {
			continue
		}
		if err := line("-", part); err != nil {
			return err
		}
	}
	fmt.Fprintf(s.out, "%-17s %5s %4d\n", "all", "", parts.Minutes(parts.Parts()))
	return nil
}

// runParts runs parts one after the other; one that fails does not keep the others from running. One that does not end in
// time is stopped.
func (s *session) runParts(ctx context.Context, chosen []parts.Part, record parts.Record, how asked) error {
	all, err := suite.List(ctx, s.checkout)
	if err != nil {
		return err
	}
	limited, stop := how.limited(ctx)
	defer stop()
	var failed, late []string
	for i, part := range chosen {
		heading := fmt.Sprintf("\n=== part %s (%d of %d, about %d min)", part.Name, i+1, len(chosen), part.Minutes)
		state, done, err := s.state(record, part)
		if err != nil {
			return err
		}
		if done && !how.again {
			fmt.Fprintf(s.out, "%s: %s\n", heading, state)
			continue
		}
		fmt.Fprintf(s.out, "%s: %s\n", heading, part.Why)
		begin := time.Now()
		passed, err := s.keepPart(limited, part, all, how.arguments)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			late = append(late, part.Name)
			fmt.Fprintf(s.out, "=== part %s was stopped: the time is over\n", part.Name)
			continue
		}
		if err != nil {
			return err
		}
		took := time.Since(begin).Round(time.Second)
		if !passed {
			failed = append(failed, part.Name)
			fmt.Fprintf(s.out, "=== part %s failed after %s\n", part.Name, took)
			continue
		}
		fmt.Fprintf(s.out, "=== part %s passed in %s\n", part.Name, took)
		// A run with arguments of its own, or with files that differ from the commit or changed meanwhile, says nothing
		// of the commit.
		if s.commit.isDirty || len(how.arguments) > 0 || s.look(ctx) != s.commit {
			fmt.Fprintln(s.out, "=== not recorded: it ran with arguments, or with files that differ from the commit")
			continue
		}
		if err := record.Add(part.Name, parts.Pass{Commit: s.commit.hash, When: begin, Took: took}); err != nil {
			return err
		}
	}
	return s.conclude(late, failed)
}

// conclude tells which parts were stopped, and returns an error where some failed.
func (s *session) conclude(late, failed []string) error {
	if len(late) > 0 {
		names := strings.Join(late, ",")
		fmt.Fprintf(s.out, "\n=== NOT RUN to their ends, which fails nothing: %s; `make test-long PART=%s` runs them\n", names, names)
	}
	if len(failed) > 0 {
		return fmt.Errorf("%w, in parts %s; `make test-long PART=%s` runs one again",
			errTests, strings.Join(failed, ", "), failed[0])
	}
	return nil
}

// toolchain has the go command take the release of Go that go.mod names; nothing where it names none.
func (s *session) toolchain() []string {
	text, err := os.ReadFile(filepath.Join(s.checkout, "go.mod"))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		if release, found := strings.CutPrefix(strings.TrimSpace(line), "toolchain "); found {
			return []string{"GOTOOLCHAIN=" + release}
		}
	}
	return nil
}

// kept is the folder below the checkout with what parts printed, and with what their tests leave (`go test -artifacts`).
const kept = "bin/long"

// keepPart runs a part, and keeps what it prints.
func (s *session) keepPart(
	ctx context.Context, part parts.Part, all []suite.Package, more []string,
) (passed bool, err error) {
	if err := os.MkdirAll(filepath.Join(s.checkout, kept), 0o755); err != nil {
		return false, err
	}
	file, err := os.Create(filepath.Join(s.checkout, kept, part.Name+".log"))
	if err != nil {
		return false, err
	}
	out := s.out
	s.out = io.MultiWriter(out, file)
	passed, err = s.runPart(ctx, part, all, more)
	s.out = out
	return passed, errors.Join(err, file.Close())
}

func (s *session) runPart(
	ctx context.Context, part parts.Part, all []suite.Package, more []string,
) (passed bool, err error) {
	s.failed = false
	for _, call := range part.Invocations(all, more) {
		call.Flags = append(call.Flags, "-artifacts", "-outputdir="+filepath.Join(s.checkout, kept))
		if part.Pinned {
			call.Variables = append(call.Variables, s.toolchain()...)
		}
		if err := s.call(ctx, call); err != nil {
			return false, err
		}
	}
	return !s.failed, nil
}
