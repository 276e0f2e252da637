package gotemplate

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// costly functions generate RSA keys, which takes seconds; those of the same names with Key are in the golden files.
var costly = []string{"genCA", "genSelfSignedCert", "genSignedCert"}

// TestEveryFunctionIsInTheGoldenFiles fails when a function is added that no manifest of the golden files calls.
func TestEveryFunctionIsInTheGoldenFiles(t *testing.T) {
	var text []byte
	files, err := filepath.Glob("testdata/functions/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, content...)
	}
	r := rendering{data: &templatedata.Data{}}
	var missing []string
	for name := range r.functions() {
		if !regexp.MustCompile(`\{\{[^}]*\b`+regexp.QuoteMeta(name)+`\b[^:]`).Match(text) && !slices.Contains(costly, name) {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		t.Errorf("no golden file has a call of %q", missing)
	}
}
