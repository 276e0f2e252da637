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
	linked := linkedBy(t, module+"/cmd/...")
	if !slices.Contains(linked, "helm.sh/helm/v3/pkg/engine") {
		t.Fatal("go list says nothing of Helm's engine")
	}
	for name, id := range notLinked {
		if slices.Contains(linked, name) {
			t.Errorf("%s: %s is linked", id, name)
		}
	}
}

// linkedBy are the packages that programs consist of.
func linkedBy(t *testing.T, programs ...string) []string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps"}, programs...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(output))
}

// onlyInCommand are modules that only the command line may link, and onlyInManagers packages that it does not need.
var (
	onlyInCommand  = []string{"github.com/spf13/cobra", "k8s.io/cli-runtime", "sigs.k8s.io/kustomize"}
	onlyInManagers = []string{
		module + "/pkg/controllers", module + "/pkg/serve/query", module + "/pkg/serve/webhook",
		"sigs.k8s.io/controller-runtime/pkg/manager",
	}
)

// Red when a manager links libraries of the command line, or the command line a controller.
func TestManagersAndTheCommandLineLinkOnlyTheirOwn(t *testing.T) {
	managers := linkedBy(t, module+"/cmd/master-controller-manager", module+"/cmd/seed-controller-manager")
	command := linkedBy(t, module+"/cmd/kubectl-addons")
	for _, test := range []struct{ linked, not, but []string }{{managers, onlyInCommand, onlyInManagers}, {command, onlyInManagers, onlyInCommand}} {
		if len(belowAny(test.linked, test.but)) == 0 {
			t.Fatal("go list does not show what the programs are for")
		}
		for _, name := range belowAny(test.linked, test.not) {
			t.Errorf("%s is linked", name)
		}
	}
}

func belowAny(names, roots []string) (found []string) {
	for _, name := range names {
		if within(name, roots) {
			found = append(found, name)
		}
	}
	return found
}
