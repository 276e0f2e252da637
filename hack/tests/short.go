package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/trellis-addons/trellis/hack/tests/results"
	"github.com/trellis-addons/trellis/hack/tests/suite"
)

// runShort runs every package in its short form, or those whose folders are given.
func runShort(ctx context.Context, arguments []string) (err error) {
	flags := flag.NewFlagSet("tests", flag.ExitOnError)
	events := flags.String("json", "", "file that the JSON of go test is appended to")
	record := flags.Bool("record", false, "write how long packages took into "+suite.SecondsFile)
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	s, err := newSession(ctx)
	if err != nil {
		return err
	}
	closed, err := s.keepEvents(*events)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closed()) }()
	s.everyTest = flags.NArg() > 0
	plan, all, err := s.planShort(ctx, flags.Args())
	if err != nil {
		return err
	}
	for i := range plan {
		if *record { // a package's time is that of all its calls
			plan[i].Flags = append(plan[i].Flags, "-count=1")
		}
	}
	if err := s.runAll(ctx, plan); err != nil {
		return err
	}
	if *record {
		if err := s.record(all); err != nil {
			return err
		}
	}
	return s.verdict()
}

// planShort plans for the packages of some folders; none means all. It gives all packages too.
func (s *session) planShort(
	ctx context.Context, folders []string,
) (plan []suite.Invocation, all []suite.Package, err error) {
	if all, err = suite.List(ctx, s.checkout); err != nil {
		return nil, nil, err
	}
	seconds, err := suite.Measured()
	if err != nil {
		return nil, nil, err
	}
	races, err := suite.Races(os.DirFS(s.checkout), all)
	if err != nil {
		return nil, nil, err
	}
	chosen := suite.InTest(all)
	if len(folders) > 0 {
		if chosen, err = suite.In(all, folders); err != nil {
			return nil, nil, err
		}
	}
	return suite.Short(chosen, races, seconds), all, nil
}

// record writes how long packages took into the file of times.
func (s *session) record(all []suite.Package) error {
	before, err := suite.Measured()
	if err != nil {
		return err
	}
	text := before.With(s.seconds(), all).String()
	return os.WriteFile(filepath.Join(s.checkout, suite.SecondsFile), []byte(text), 0o644)
}

// runAll runs a plan. The table of times comes before the last call, so that the last lines are go test's.
func (s *session) runAll(ctx context.Context, plan []suite.Invocation) error {
	for i, call := range plan {
		if i > 0 && i == len(plan)-1 {
			fmt.Fprintf(s.out, "\nseconds of packages:\n%s\n", results.Table(s.ended))
		}
		if err := s.call(ctx, call); err != nil {
			return err
		}
	}
	return nil
}
