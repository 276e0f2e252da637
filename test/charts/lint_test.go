package charts

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/trellis-addons/trellis/test/binaries"
)

// TestHelmLintsTheCharts asks the helm program itself, which knows more rules than rendering does.
func TestHelmLintsTheCharts(t *testing.T) {
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	cache, err := binaries.Cache()
	if err != nil {
		t.Fatal(err)
	}
	helm, err := binaries.Find(cache, "helm", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, chart := range []string{"trellis-master", "trellis-seed", webChart} {
		command := exec.CommandContext(t.Context(), helm, "lint", "--strict", "--kube-version", binaries.Older, filepath.Join(root, "charts", chart))
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("helm lint %s: %v\n%s", chart, err, output)
		}
	}
}
