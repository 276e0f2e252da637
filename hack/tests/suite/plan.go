package suite

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"time"
)

const (
	// atATime is how many packages go test runs at a time. Most tests wait for API servers and for processes that they
	// started, so one more than the two processors that the bars are set on keeps both busy; each package more costs
	// memory.
	atATime = 3
	// shortLimit is how long a package may take in its short form: the longest takes a few minutes.
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

// Races says which packages `make test` runs with the race detector, by import path: the concurrent ones. Not among
// them are those below test/ that start control planes: they run the managers as processes of their own, which the
// detector does not see. `make test-long` runs these with it too.
func Races(checkout fs.FS, all []Package) (map[string]bool, error) {
	starts := DependsOn(all, fleet)
	races := map[string]bool{}
	for _, one := range all {
		if within(one.Folder, "test") && starts[one.Path] {
			continue
		}
		concurrent, err := IsConcurrent(checkout, one)
		if err != nil {
			return nil, err
		}
		races[one.Path] = concurrent
	}
	return races, nil
}

// Short plans the calls of go test that run packages in their short form: one for those with the race detector and
// one for the others, in each module. Those that take long come first, so that none of them runs alone at the end.
// The kinds come last.
func Short(packages []Package, races map[string]bool, seconds Seconds) []Invocation {
	tested := slices.DeleteFunc(slices.Clone(packages), func(p Package) bool { return !p.HasTests() })
	seconds.Sort(tested)
	var plan []Invocation
	for _, root := range []string{".", Kinds} {
		for _, race := range []bool{true, false} {
			var folders []string
			for _, one := range tested {
				if one.Root() == root && races[one.Path] == race {
					folders = append(folders, one.Folder)
				}
			}
			if len(folders) > 0 {
				plan = append(plan, Invocation{Root: root, Race: race, Folders: folders, Flags: shortFlags()})
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
