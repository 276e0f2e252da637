package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trellis-addons/trellis/hack/tests/change"
	"github.com/trellis-addons/trellis/hack/tests/run"
	"github.com/trellis-addons/trellis/hack/tests/suite"
)

// check runs what a change needs: what changed and what imports it.
func check(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("tests check", flag.ExitOnError)
	asked := flags.String("base", "", "the commit that changes are counted from; empty: where this branch left main")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("check takes no packages, and got %s: `go run ./hack/tests %[1]s` runs them", strings.Join(flags.Args(), " "))
	}
	s, err := newSession(ctx)
	if err != nil {
		return err
	}
	s.everyTest = true
	from, err := base(ctx, s.checkout, *asked)
	if err != nil {
		return err
	}
	files, err := changedSince(ctx, s.checkout, from)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		fmt.Fprintf(s.out, "nothing changed since %.12s; BASE=HEAD^ checks the last commit\n", from)
		return nil
	}
	all, err := suite.List(ctx, s.checkout)
	if err != nil {
		return err
	}
	seconds, err := suite.Measured()
	if err != nil {
		return err
	}
	there := func(file string) bool {
		_, err := os.Stat(filepath.Join(s.checkout, file))
		return err == nil
	}
	plan := change.Make(files, there, all, seconds)
	races, err := suite.Races(os.DirFS(s.checkout), all)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%d files changed since %.12s\n", len(files), from)
	fmt.Fprint(s.out, explain(plan))
	begin := time.Now()
	if err := s.runCheck(ctx, plan, checkCalls(plan, races, seconds)); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "\nchecked in %s\n", time.Since(begin).Round(time.Second))
	return s.verdict()
}

// explain says what will run and why.
func explain(plan change.Plan) string {
	var text strings.Builder
	line := func(title string, packages []suite.Package) {
		if len(packages) > 0 {
			fmt.Fprintf(&text, "%-11s %s\n", title, strings.Join(foldersOf(packages), " "))
		}
	}
	for _, note := range plan.Notes {
		fmt.Fprintf(&text, "%-11s %s\n", "note:", note)
	}
	fmt.Fprintf(&text, "%-11s %s, which hold in all packages\n", "laws:", change.Laws)
	line("changed:", plan.Changed)
	line("importing:", plan.Importing)
	for _, one := range plan.LeftOut {
		fmt.Fprintf(&text, "%-11s %s imports what changed, and takes long: %s\n", "left out:", one.Folder, alone(one))
	}
	return text.String()
}

// alone is the command that runs one package.
func alone(one suite.Package) string {
	if suite.Elsewhere[one.Folder] != "" {
		return "go test ./" + one.Folder
	}
	return "go run ./hack/tests ./" + one.Folder
}

// checkCalls are the tests: what changed with the race detector where `make test` has it, what imports that without.
func checkCalls(plan change.Plan, races map[string]suite.Race, seconds suite.Seconds) []suite.Invocation {
	laws := suite.Invocation{Root: ".", Folders: []string{change.Laws}}
	changed, importing := suite.Short(plan.Changed, races, seconds), suite.Short(plan.Importing, nil, seconds)
	return slices.Concat([]suite.Invocation{laws}, changed, importing)
}

// runCheck looks at the format, has the compiler and vet look at the packages, and runs the tests.
func (s *session) runCheck(ctx context.Context, plan change.Plan, calls []suite.Invocation) error {
	if err := errors.Join(s.format(ctx, plan.Format), s.vet(ctx, plan.Vet)); err != nil {
		return err
	}
	if s.failed {
		return errors.New("tests did not run: mend what is above first")
	}
	for _, call := range calls {
		if err := s.call(ctx, call); err != nil {
			return err
		}
	}
	return nil
}

// format notes files that gofmt would change.
func (s *session) format(ctx context.Context, files []string) error {
	if len(files) == 0 {
		return nil
	}
	terminal := s.out
	var unformatted strings.Builder
	s.out = &unformatted
	err := s.run(ctx, run.Command{Words: append([]string{"gofmt", "-l"}, files...), Folder: "."})
	s.out = terminal
	if unformatted.Len() > 0 {
		s.failed = true
		fmt.Fprintf(s.out, "not gofmt-ed:\n%s", unformatted.String())
	}
	return err
}

// vet has the compiler and go vet look at packages.
func (s *session) vet(ctx context.Context, packages []suite.Package) error {
	for _, root := range []string{".", suite.Kinds} {
		words := []string{"go", "vet"}
		for _, one := range packages {
			if one.Root() == root {
				words = append(words, one.Path)
			}
		}
		if len(words) == 2 {
			continue
		}
		if err := s.run(ctx, run.Command{Words: words, Folder: root}); err != nil {
			return err
		}
	}
	return nil
}

func foldersOf(packages []suite.Package) []string {
	var folders []string
	for _, one := range packages {
		folders = append(folders, one.Folder)
	}
	return folders
}
