package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/trellis-addons/trellis/hack/tests/results"
	"github.com/trellis-addons/trellis/hack/tests/suite"
)

// names prints the names of tests that passed, or compares two lists of them.
func names(_ context.Context, arguments []string) error {
	flags := flag.NewFlagSet("tests names", flag.ExitOnError)
	before := flags.String("before", "", "file with names that have to be there")
	after := flags.String("after", "", "file with names that are there")
	renames := flags.String("renames", "", "file with lines \"package test -> package test\"; empty: nothing was renamed")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *before == "" && *after == "" {
		return printNames(os.Stdout, flags.Args())
	}
	if len(flags.Args()) > 0 {
		return errors.New("a comparison takes lists of names: files of JSON are read without -before and -after")
	}
	return compareNames(os.Stdout, *before, *after, *renames)
}

func printNames(out io.Writer, files []string) error {
	if len(files) == 0 {
		return errors.New("no file is named: give those that `go test -json` wrote")
	}
	var outputs []io.Reader
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		outputs = append(outputs, file)
	}
	passed, err := results.PassedTests(suite.Module, outputs...)
	if err != nil {
		return err
	}
	for _, name := range passed {
		fmt.Fprintln(out, name)
	}
	return nil
}

func compareNames(out io.Writer, before, after, renames string) error {
	var lists [2][]string
	for i, name := range []string{before, after} {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		lists[i] = strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	var known []results.Rename
	if renames != "" {
		text, err := os.ReadFile(renames)
		if err != nil {
			return err
		}
		if known, err = results.ParseRenames(string(text)); err != nil {
			return fmt.Errorf("%s: %w", renames, err)
		}
	}
	difference := results.Compare(lists[0], lists[1], known)
	for _, pair := range difference.Masked {
		fmt.Fprintln(out, "the same but for numbers:", pair)
	}
	for _, rename := range difference.Idle {
		fmt.Fprintln(out, "a rename that no name needs:", rename)
	}
	for _, name := range difference.Missing {
		fmt.Fprintln(out, "missing:", name)
	}
	fmt.Fprintf(out, "%d names before, %d after; %d are the same but for numbers, %d are missing\n",
		len(lists[0]), len(lists[1]), len(difference.Masked), len(difference.Missing))
	if len(difference.Missing) > 0 {
		return errors.New("tests are missing")
	}
	return nil
}
