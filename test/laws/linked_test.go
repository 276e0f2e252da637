package laws

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// notLinked are packages that must be in neither manager, also not by way of a dependency, with the case of the threat model.
var notLinked = map[string]string{
	"golang.org/x/crypto/openpgp":          "V16",
	"golang.org/x/crypto/openpgp/armor":    "V16",
	"helm.sh/helm/v3/pkg/provenance":       "V16",
	"helm.sh/helm/v3/pkg/strvals":          "V07",
	"github.com/xeipuuv/gojsonschema":      "V14",
	"helm.sh/helm/v3/pkg/action":           "V15",
	"helm.sh/helm/v3/pkg/plugin/installer": "V13",
}

// V07, V13, V14, V15, V16: Packages of advisories that the product must not use by itself are not
// linked. Red when a dependency brings what the product must not use by itself.
func TestNothingDangerousIsLinked(t *testing.T) {
	output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", module+"/cmd/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(output))
	if !slices.Contains(linked, "helm.sh/helm/v3/pkg/engine") {
		t.Fatal("go list says nothing of Helm's engine")
	}
	for name, id := range notLinked {
		if slices.Contains(linked, name) {
			t.Errorf("%s: %s is linked", id, name)
		}
	}
}
