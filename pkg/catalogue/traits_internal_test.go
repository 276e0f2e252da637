package catalogue

import (
	"os"
	"regexp"
	"strings"
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// TestEveryMethodHasTraits fails when a method of the schema has no row in the table of traits.
func TestEveryMethodHasTraits(t *testing.T) {
	t.Parallel()
	types, err := os.ReadFile("../../apis/kubermatic/v1/addoncatalogue_types.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`Enum=(\S+)\ntype Method string`).FindSubmatch(types)
	if found == nil {
		t.Fatal("type Method has no marker with its values")
	}
	for method := range strings.SplitSeq(string(found[1]), ";") {
		if _, has := traits[v1.Method(method)]; !has {
			t.Errorf("method %q has no traits", method)
		}
	}
}
