package sbom

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/hack/images/checkout"
)

// spdxID is what SPDX 2.3 has for identifiers (section 7.2).
var spdxID = regexp.MustCompile(`^SPDXRef-[A-Za-z0-9.-]+$`)

func subject() Subject {
	return Subject{
		Name: "x", Platform: "linux/arm64", Binary: []byte("x"),
		Stamp: checkout.Stamp{Version: "1.2.3", Commit: "2e", Date: time.Unix(0, 0)},
		Build: &debug.BuildInfo{
			GoVersion: "go1.26.8", Path: "example.com/x/cmd/x", Main: debug.Module{Path: "example.com/x", Version: "(devel)"},
			Deps: []*debug.Module{
				{Path: "example.com/plain", Version: "v1.0.0", Sum: "h1:a="},
				{Path: "example.com/inner", Version: "v0.0.0", Replace: &debug.Module{Path: "./inner", Version: "(devel)"}},
				{Path: "example.com/a_b", Version: "v1.0.0"}, {Path: "example.com/a~b", Version: "v1.0.0"},
				{Path: "example.com/a-b", Version: "v1.0.0"},
				{Path: "example.com/old", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/new_", Version: "v2.0.0+incompatible"}},
			},
		},
		Extra: []Component{{"example.com/roots", "v3", "authorities"}},
	}
}

// What replaces a module is listed, by its own version; a folder of the checkout bears the checkout's; what
// the image has beside the program is there; modules whose paths differ only in what no identifier can have are
// two. Red when a replaced module is listed by its former name, when data are left out, or when two packages share an
// identifier.
func TestWhatIsInAProgramIsListed(t *testing.T) {
	content, err := Document(subject())
	if err != nil {
		t.Fatal(err)
	}
	var got document
	if err := json.Unmarshal(content, &got); err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, one := range got.Packages {
		listed[one.References[0].Locator] = one.Source
	}
	want := map[string]string{
		"pkg:golang/example.com/x@1.2.3":                    "program example.com/x/cmd/x for linux/arm64, of commit 2e",
		"pkg:golang/stdlib@1.26.8":                          "Go's standard library",
		"pkg:golang/example.com/plain@v1.0.0":               "go.sum h1:a=",
		"pkg:golang/example.com/a_b@v1.0.0":                 "",
		"pkg:golang/example.com/a~b@v1.0.0":                 "",
		"pkg:golang/example.com/a-b@v1.0.0":                 "",
		"pkg:golang/example.com/inner@1.2.3":                "a folder of the program's own checkout",
		"pkg:golang/example.com/new_@v2.0.0%2Bincompatible": "in place of example.com/old v1.0.0",
		"pkg:golang/example.com/roots@v3":                   "authorities",
	}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	related := map[string]bool{}
	for _, one := range got.Relationships {
		related[one.Related] = true
	}
	for _, one := range got.Packages {
		if !related[one.ID] || !spdxID.MatchString(one.ID) {
			t.Errorf("%s is related to nothing, or is no identifier", one.ID)
		}
		delete(related, one.ID)
	}
	if len(related) > 0 {
		t.Errorf("relations to nothing, or two packages of one identifier: %v", slices.Collect(maps.Keys(related)))
	}
	if got.Creation.Created != "1970-01-01T00:00:00Z" {
		t.Errorf("created %s, which is not the commit's date", got.Creation.Created)
	}
}

// Red when a list holds a time or chance, or does not tell two programs apart.
func TestEqualProgramsHaveEqualLists(t *testing.T) {
	list := func(subject Subject) []byte {
		t.Helper()
		content, err := Document(subject)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	other := subject()
	other.Binary = []byte("y")
	if first := list(subject()); !bytes.Equal(first, list(subject())) || bytes.Equal(first, list(other)) {
		t.Error("lists of equal programs differ, or those of different ones don't")
	}
}
