// Package change plans what `make check` runs, from the files that changed: it decides, and runs nothing.
package change

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/trellis-addons/trellis/hack/tests/suite"
)

const (
	// slowImporter is how many seconds a package may take that did not change itself and imports what did.
	slowImporter = 20
	// budget is how many seconds such packages may take together: the whole check is to take less than three minutes.
	budget = 90
)

// Folders of packages that check more than themselves.
const (
	Laws      = "test/laws"
	pages     = "hack/docs"
	pipelines = "hack/ci"
)

// Plan is what is to run.
type Plan struct {
	// Changed are the packages with files that changed, or that check such files; Importing are those that import what
	// changed. Both are there only where they have tests.
	Changed, Importing []suite.Package
	// LeftOut import what changed, and take too long.
	LeftOut []suite.Package
	// Vet are the packages to vet: those that changed, and importers whose tests do not run.
	Vet []suite.Package
	// Format are Go files.
	Format []string
	// Notes say what else is to be done.
	Notes []string
}

// Make plans for files that changed, by their paths below the checkout. There says whether a file is there still.
func Make(files []string, there func(string) bool, all []suite.Package, seconds suite.Seconds) Plan {
	var plan Plan
	changed, extra := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		switch {
		case isPage(file):
			extra[pipelines], extra[pages], extra[pages+"/markdown"] = true, true, true
		case file == "Makefile" || strings.HasPrefix(file, ".ci/"):
			extra[pipelines] = true
		default:
			if one, found := owner(all, path.Dir(file)); found {
				changed[one.Path] = true
			}
		}
		if path.Ext(file) == ".go" && there(file) {
			plan.Format = append(plan.Format, file)
		}
	}
	plan.Notes = notes(files, all)
	plan.choose(all, changed, seconds)
	for _, one := range all {
		if extra[one.Folder] && !changed[one.Path] {
			plan.Changed = append(plan.Changed, one)
		}
	}
	return plan
}

// isPage says whether a file is documentation.
func isPage(file string) bool {
	return strings.HasPrefix(file, "docs/") || path.Ext(file) == ".md" && !strings.Contains(file, "/testdata/")
}

// owner is the package of a folder, or of the nearest folder above it.
func owner(all []suite.Package, folder string) (suite.Package, bool) {
	for ; folder != "."; folder = path.Dir(folder) {
		at := slices.IndexFunc(all, func(p suite.Package) bool { return p.Folder == folder })
		if at >= 0 {
			return all[at], true
		}
	}
	return suite.Package{}, false
}

// choose divides packages, where those that changed are known by their paths.
func (p *Plan) choose(all []suite.Package, changed map[string]bool, seconds suite.Seconds) {
	var importing []suite.Package
	for _, one := range all {
		imports := slices.ContainsFunc(one.Imports, func(path string) bool { return changed[path] })
		switch {
		case one.Folder == Laws: // they run in any case
		case changed[one.Path]:
			p.Vet = append(p.Vet, one)
			if one.HasTests() {
				p.Changed = append(p.Changed, one)
			}
		case imports && one.HasTests():
			importing = append(importing, one)
		case imports:
			p.Vet = append(p.Vet, one)
		}
	}
	// The lightest first, so that as many as may be run in the time that there is.
	slices.SortStableFunc(importing, func(a, b suite.Package) int {
		return cmp.Compare(seconds.Of(a.Folder), seconds.Of(b.Folder))
	})
	sum := 0.0
	for _, one := range importing {
		takes := seconds.Of(one.Folder)
		if takes > slowImporter || sum+takes > budget || suite.Elsewhere[one.Folder] != "" {
			p.LeftOut, p.Vet = append(p.LeftOut, one), append(p.Vet, one) // nothing else compiles it
			continue
		}
		sum += takes
		p.Importing = append(p.Importing, one)
	}
}

// notes are about files that packages' tests say too little of.
func notes(files []string, all []suite.Package) []string {
	var found []string
	has := func(is func(string) bool) bool { return slices.ContainsFunc(files, is) }
	if has(func(file string) bool {
		return strings.HasPrefix(file, suite.Kinds+"/") || strings.HasPrefix(file, "charts/")
	}) {
		found = append(found, "apis or charts changed: run `make generate` and commit what it wrote")
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		if slices.Contains(files, file) {
			found = append(found, file+" changed, which every package depends on: run `make test`")
			break
		}
	}
	var unowned []string
	for _, file := range files {
		top, _, below := strings.Cut(file, "/")
		_, owned := owner(all, path.Dir(file))
		if below && !owned && !isPage(file) && top != ".ci" {
			unowned = append(unowned, file)
		}
	}
	if len(unowned) > 0 {
		found = append(found, fmt.Sprintf("%s: no package of this module; `make verify` and `make test` look at it",
			strings.Join(unowned, ", ")))
	}
	return found
}
