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
	if f.choice.Version.Template.Method != kubermaticv1.MethodHelm {
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
	own := f.memory.brought.by(contentKey(f))
	if record := f.Record(); record != nil {
		own = slices.Concat(own, record.Inventory.DefinedGroups(), record.Shared.DefinedGroups())
	}
	return withoutOwn(f.Connection.APIVersions(), own)
}

// withoutOwn leaves out the groups of CustomResourceDefinitions that the installation itself brings: with them, applying a chart
// would change what it is rendered with. The renderer adds what is in the chart's crds/ folder.
func withoutOwn(versions, own []string) []string {
	return slices.DeleteFunc(versions, func(version string) bool {
		group, _, _ := strings.Cut(version, "/")
		return slices.Contains(own, group)
	})
}

// broughtGroups are the groups that some content was seen to bring, before any record says so.
type broughtGroups struct {
	content string
	groups  []string
}

func (b broughtGroups) by(content string) []string {
	if b.content != content {
		return nil
	}
	return b.groups
}

func contentKey(f *facts) string { return f.choice.Origin.Digest + "/" + f.snapshot.Digest }

// learnsOwn says whether a rendering that counted groups as served turned out to bring them itself: they were there before, by helm
// or from an earlier time, and are its own from now on. Then it was rendered with what the next look would take away again.
func (r *Reconciler) learnsOwn(f *facts) (bool, error) {
	asks, err := r.servedVersions(f)
	if err != nil || len(asks) == 0 {
		return false, err
	}
	var brought []string
	for _, group := range apply.Planned(f.Objects, nil).DefinedGroups() {
		if slices.ContainsFunc(asks, func(version string) bool { return strings.HasPrefix(version, group+"/") }) {
			brought = append(brought, group)
		}
	}
	if len(brought) == 0 {
		return false, nil
	}
	content := contentKey(f)
	f.memory.brought = broughtGroups{content, slices.Concat(f.memory.brought.by(content), brought)}
	return true, r.hashInputs(f)
}
