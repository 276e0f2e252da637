package addon_test

import (
	"fmt"
	"log/slog"
	"os"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/controllers/addon"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/long"
)

const (
	catalogueNamespace = "addon-catalogue"
	addons             = 100
	versionsOfAnAddon  = 50
)

func TestMain(m *testing.M) {
	if url := os.Getenv(controllerVariable); url != "" {
		ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
		os.Exit(runController(url))
	}
	if long.Skips() {
		os.Exit(m.Run())
	}
	fleet.Main(m, fleet.ClusterOptions{Name: "seed"})
}

// newController is controller addon, as the seed's manager has it.
func newController(made wiring.Seed) *addon.Reconciler {
	dependencies := wiring.Addon(made, mergedcatalogue.New(logr.Discard()), addon.Options{CatalogueNamespace: catalogueNamespace})
	dependencies.Metrics = addon.NewMetrics(metrics.Registry)
	return addon.New(dependencies)
}

// mergedCatalogue is one add-on of many versions; every third has a range that all of kubernetesVersions lie in, and with
// excludes the last version fits those below 1.37 only.
func mergedCatalogue(number int, description string, excludes bool) *v1.AddonCatalogue {
	name := fmt.Sprintf("addon-%03d", number)
	found := v1.Addon{Name: v1.AddonName(name), Description: description}
	for i := range versionsOfAnAddon {
		version := v1.AddonVersion{Version: fmt.Sprintf("%d.%d.%d", 1+i/25, i%25, number%10)}
		if i%3 == 0 {
			version.Constraints = &v1.Constraints{KKPVersion: ">= 2.28", K8sVersion: v1.VersionRange(fmt.Sprintf(">= 1.%d, < 2", 20+i%5))}
		}
		found.Versions = append(found.Versions, version)
	}
	if excludes {
		found.Versions[versionsOfAnAddon-1].Constraints = &v1.Constraints{K8sVersion: "< 1.37.5"}
	}
	made := given.Merged(catalogueNamespace, v1.CatalogueCustom, found)
	made.TypeMeta = metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "AddonCatalogue"}
	return made
}

// kubernetesVersions are 12 distinct versions.
func kubernetesVersions() []string {
	var versions []string
	for i := range 12 {
		versions = append(versions, fmt.Sprintf("v1.%d.%d", 35+i/4, i%4+2))
	}
	return versions
}
