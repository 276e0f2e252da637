package suite

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// atATime is how many packages go test runs at a time. Most tests wait for API servers and for processes that they
	// started, so one more than the two processors that the bars are set on keeps both busy; each package more costs
	// memory.
	atATime = 3
	// shortLimit is how long a package may take in its short form, on a slow machine too: the longest takes a few minutes.
	shortLimit = 40 * time.Minute
)

// fleet is the package that starts control planes.
const fleet = Module + "/test/fleet"

// Elsewhere are packages that `make test` leaves to `make test-long`, with the reason.
var Elsewhere = map[string]string{
	"test/certmanager": "cert-manager's controllers are built from source for it",
	"test/clusterctl":  "clusterctl is built from source for it",
	"test/ocm":         "an agent of Open Cluster Management is built from source for it",
	"test/release":     "it makes a whole release, with images",
}

// Invocation is one call of go test.
type Invocation struct {
	// Root is the folder, below the checkout, of the packages' module.
	Root string
	// Race says whether the race detector watches.
	Race bool
	// Folders are those of the packages, below the checkout; the first are started first.
	Folders []string
	// Flags come before the packages, Arguments after them.
	Flags, Arguments []string
	// Variables are added to its environment.
	Variables []string
}

// Command is the command, which is to run in Root, below the checkout.
func (i Invocation) Command() []string {
	// Vet is a part of lint.
	words := []string{"go", "test", "-vet=off"}
	if i.Race {
		words = append(words, "-race")
	}
	words = append(words, i.Flags...)
	for _, folder := range i.Folders {
		words = append(words, "./"+below(i.Root, folder))
	}
	return append(words, i.Arguments...)
}

// Environment is what the command needs in its environment: the race detector needs C, all else is compiled without.
func (i Invocation) Environment() []string {
	if i.Race {
		return append([]string{"CGO_ENABLED=1"}, i.Variables...)
	}
	return append([]string{"CGO_ENABLED=0"}, i.Variables...)
}

func below(root, folder string) string {
	if root == "." {
		return folder
	}
	if folder == root {
		return "."
	}
	return folder[len(root)+1:]
}

// Races says which packages `make test` runs with the race detector, by import path: concurrent ones, except all below
// hack/ and those below test/ that start control planes, whose work happens in other processes. `make test-long` runs
// these with it too.
func Races(checkout fs.FS, all []Package) (map[string]Race, error) {
	starts := DependsOn(all, fleet)
	races := map[string]Race{}
	for _, one := range all {
		if within(one.Folder, "hack") || within(one.Folder, "test") && starts[one.Path] {
			continue
		}
		race, err := raceOf(checkout, one)
		if err != nil {
			return nil, err
		}
		races[one.Path] = race
	}
	return races, nil
}

// Short plans the calls of go test that run packages in their short form. In each module these are one for those with
// the race detector, one for their tests that it makes too slow, and one for the other packages. Those that take long
// come first, so that none of them runs alone at the end. The kinds come last.
func Short(packages []Package, races map[string]Race, seconds Seconds) []Invocation {
	tested := slices.DeleteFunc(slices.Clone(packages), func(p Package) bool { return !p.HasTests() })
	seconds.Sort(tested)
	var plan []Invocation
	for _, root := range []string{".", Kinds} {
		with := Invocation{Root: root, Race: true, Flags: shortFlags()}
		heavy, without := Invocation{Root: root}, Invocation{Root: root, Flags: shortFlags()}
		var names []string
		for _, one := range tested {
			race := races[one.Path]
			switch {
			case one.Root() != root:
			case !race.Concurrent:
				without.Folders = append(without.Folders, one.Folder)
			default:
				with.Folders = append(with.Folders, one.Folder)
				if len(race.Heavy) > 0 {
					heavy.Folders, names = append(heavy.Folders, one.Folder), append(names, race.Heavy...)
				}
			}
		}
		slices.Sort(names)
		names = slices.Compact(names) // packages may have tests of one name
		heavy.Flags = append(shortFlags(), "-run=^("+strings.Join(names, "|")+")$")
		for _, call := range []Invocation{with, heavy, without} {
			if len(call.Folders) > 0 {
				plan = append(plan, call)
			}
		}
	}
	return plan
}

func shortFlags() []string {
	return []string{"-short", "-p=" + strconv.Itoa(atATime), "-timeout=" + shortLimit.String()}
}

// InTest are the packages of `make test`.
func InTest(all []Package) []Package {
	return slices.DeleteFunc(slices.Clone(all), func(p Package) bool { return Elsewhere[p.Folder] != "" })
}

// Sort puts packages that take long first. Others come in the order of their folders.
func (s Seconds) Sort(packages []Package) {
	slices.SortFunc(packages, func(a, b Package) int {
		return cmp.Or(cmp.Compare(s.Of(b.Folder), s.Of(a.Folder)), cmp.Compare(a.Folder, b.Folder))
	})
}

// In are the packages of some folders, which are given below the checkout, with or without "./" before.
func In(all []Package, folders []string) ([]Package, error) {
	var found []Package
	for _, folder := range folders {
		at := slices.IndexFunc(all, func(p Package) bool { return p.Folder == path.Clean(folder) })
		if at < 0 {
			return nil, fmt.Errorf("there is no package in %q", folder)
		}
		found = append(found, all[at])
	}
	return found, nil
}
