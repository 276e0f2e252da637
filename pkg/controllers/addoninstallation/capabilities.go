package addoninstallation

import (
	"slices"
	"strings"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
)

// servedVersions count as input only for charts that ask for them: served groups come and go for reasons that have
// nothing to do with most charts.
func (r *Reconciler) servedVersions(f *facts) ([]string, error) {
	if f.entry.Template.Method != kubermaticv1.MethodHelm {
		return nil, nil
	}
	asks, err := r.capabilityCharts.ask(f.snapshot.Digest, f.snapshot.FS, asksForCapabilities)
	if err != nil || !asks {
		return nil, err
	}
	return served(f), nil
}

// served are the group versions and kinds of the user cluster that a chart learns of.
func served(f *facts) []string {
	versions := f.connection.APIVersions()
	if record := f.record(); record != nil {
		return withoutOwn(versions, record.Inventory)
	}
	return versions
}

// withoutOwn leaves out the groups of CustomResourceDefinitions that the installation itself brings: with them, applying a chart
// would change what it is rendered with. The renderer adds what is in the chart's crds/ folder.
func withoutOwn(versions []string, inventory apply.Inventory) []string {
	own := map[string]bool{}
	for _, entry := range inventory {
		// The name of a CustomResourceDefinition is its plural, a dot and its group.
		if _, group, found := strings.Cut(entry.Name, "."); found && entry.Kind == "CustomResourceDefinition" {
			own[group] = true
		}
	}
	return slices.DeleteFunc(versions, func(version string) bool {
		group, _, _ := strings.Cut(version, "/")
		return own[group]
	})
}
