package long

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// oneIn is how many commits in a row run all tests of a package that starts API servers once.
const oneIn = 3

var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w*)\(\w+ \*testing\.[TF]\)`)

// Share leaves two thirds of the tests of the package in the working directory to other commits, with -short and a rotation. TestMain
// calls it before the tests run. isEmpty says that no test is left that the command line asks for, so that nothing need be started.
func Share() (isEmpty bool, err error) {
	flag.Parse()
	if !testing.Short() || os.Getenv(RotationVariable) == "" {
		return false, nil
	}
	turn, err := rotation(os.Getenv(RotationVariable))
	if err != nil {
		return false, err
	}
	names, err := testsIn(".")
	if err != nil {
		return false, err
	}
	asked, skipped := flag.Lookup("test.run").Value.String(), flag.Lookup("test.skip").Value
	left := leftOut(names, turn)
	if skipped.String() != "" || flag.Lookup("test.bench").Value.String() != "" || len(left) == 0 {
		return false, nil // the command line chooses
	}
	if err := skipped.Set("^(" + strings.Join(left, "|") + ")$"); err != nil {
		return false, err
	}
	first, _, _ := strings.Cut(asked, "/")
	wanted, err := regexp.Compile(first)
	if err != nil {
		return false, nil //nolint:nilerr // the tests' own reading of -run is the judge
	}
	runs := slices.DeleteFunc(names, func(name string) bool { return slices.Contains(left, name) || !wanted.MatchString(name) })
	fmt.Printf("%d tests run, %d are left to other commits: make check and make test-long run all\n", len(runs), len(left))
	return len(runs) == 0, nil
}

// leftOut are the tests that do not run at a rotation. What is fuzzed tries its few kept inputs always, and the stories of
// TestKilledAtEveryWrite take turns one by one.
func leftOut(names []string, turn uint32) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "TestKilledAtEveryWrite") || isTurn(name, turn, oneIn)
	})
}

// testsIn are the names of the tests in a folder, and of what is fuzzed.
func testsIn(folder string) (names []string, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, match := range testFunction.FindAllSubmatch(text, -1) {
			names = append(names, string(match[1]))
		}
	}
	slices.Sort(names)
	return names, nil
}
