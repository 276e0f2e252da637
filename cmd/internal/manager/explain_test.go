package manager

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/fleet"
)

// bare is an API server without CRDs.
const bare = "bare"

func TestMain(m *testing.M) { fleet.Main(m, fleet.ClusterOptions{Name: bare}) }

// TestAMissingKindIsReportedWithItsRemedy: an API server has none of the CRDs. Red when the error does not say which kind is missing, or
// where it comes from.
func TestAMissingKindIsReportedWithItsRemedy(t *testing.T) {
	config := fleet.Shared().Cluster(bare).Config
	bareClient, err := client.New(config, client.Options{Scheme: wiring.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		object runtime.Object
		// crds is a file that is applied before.
		crds string
		says []string
	}{
		{&v1.AddonSet{}, "", []string{"lacks kinds", "helm show crds", "deploy/standalone/crds"}},
		{&kkpv1.Seed{}, "charts/trellis-seed/crds/kubermatic.k8c.io_addoncatalogues.yaml", []string{"no kind Seed.", "KKP installs its CRDs"}},
		{&v1.AddonSet{}, "", []string{"no kind AddonSet.", "helm show crds"}},
	} {
		if test.crds != "" {
			root, err := binaries.Root()
			if err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(filepath.Join(root, test.crds))
			if err != nil {
				t.Fatal(err)
			}
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "one.yaml"), content, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := fleet.InstallCRDs(t.Context(), config, folder); err != nil {
				t.Fatal(err)
			}
		}
		_, err := apiutil.IsObjectNamespaced(test.object, wiring.Scheme(), bareClient.RESTMapper())
		explained := Explain(fmt.Errorf("starting: %w", err))
		for _, part := range test.says {
			if err == nil || !strings.Contains(explained.Error(), part) {
				t.Errorf("%T: %v, want %q", test.object, explained, part)
			}
		}
	}
	if other := errors.New("other"); !errors.Is(Explain(other), other) || Explain(other).Error() != "other" {
		t.Error("another error is changed")
	}
}
