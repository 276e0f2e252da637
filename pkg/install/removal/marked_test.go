package removal_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/removal"
	"github.com/trellis-addons/trellis/test/lab"
)

// TestWhatIsMarkedInTheClusterStays fails if a mark on the object in the user cluster does not count, for a prune or a
// removal; if anything else counts as one; and if an object that stays is not reported, or waits for an approval.
func TestWhatIsMarkedInTheClusterStays(t *testing.T) {
	const helm, ours = "helm.sh/resource-policy", "addons.kubermatic.k8c.io/on-delete"
	const ocm = "addon.open-cluster-management.io/deletion-orphan"
	marks := map[string]struct {
		annotations string
		stays       bool
	}{
		"helm":          {`{` + helm + `: keep}`, true},
		"ours":          {`{` + ours + `: orphan}`, true},
		"ocm":           {`{` + ocm + `: ""}`, true},
		"ocm-any-value": {`{` + ocm + `: "false"}`, true},
		"ocm-other-key": {`{open-cluster-management.io/deletion-orphan: ""}`, false},
		"both":          {`{` + helm + `: keep, ` + ours + `: orphan}`, true},
		"beside-others": {`{` + helm + `: keep, example.com/a: b}`, true},
		"upper-case":    {`{` + helm + `: Keep}`, false},
		"other-value":   {`{` + helm + `: delete}`, false},
		"empty":         {`{` + ours + `: ""}`, false},
		"truth":         {`{` + ours + `: "true"}`, false},
		"none":          {`{example.com/keep: keep}`, false},
	}
	var manifests, want []string
	for name, mark := range marks {
		manifests = append(manifests, strings.Replace(lab.Settings, "settings", name, 1))
		if mark.stays {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	for what, remove := range map[string]func(*lab.Lab, ownership.Inventory, func(ownership.Key)){
		"prune": func(l *lab.Lab, objects ownership.Inventory, marked func(ownership.Key)) {
			options := removal.PruneOptions{Owner: l.Owner, Total: 100, Marked: marked}
			left, notes, err := removal.Prune(t.Context(), l.Target, objects, options)
			if err != nil || len(left) > 0 || len(notes) > 0 {
				t.Errorf("left %v, notes %v, %v", left, notes, err)
			}
		},
		"remove": func(l *lab.Lab, objects ownership.Inventory, marked func(ownership.Key)) {
			l.Remove(objects, removal.RemoveOptions{Marked: marked})
		},
		"remove with the cluster": func(l *lab.Lab, objects ownership.Inventory, _ func(ownership.Key)) {
			l.Remove(objects, removal.RemoveOptions{})
		},
	} {
		l := lab.New(t)
		l.Namespace()
		objects := l.Install(l.Prepare(lab.Manifests(manifests...)), nil)
		for name, mark := range marks {
			l.Edit(lab.ConfigMaps, name, `{metadata: {annotations: `+mark.annotations+`}}`)
		}
		var reported, there []string
		remove(l, objects, func(key ownership.Key) {
			if !slices.Contains(reported, key.Name) { // a removal checks it in each reconciliation
				reported = append(reported, key.Name)
			}
		})
		for name := range marks {
			if l.Get(lab.ConfigMaps, l.Unique, name) != nil {
				there = append(there, name)
			}
		}
		slices.Sort(there)
		slices.Sort(reported)
		stays := want
		if what == "remove with the cluster" {
			stays = nil
		}
		if diff := cmp.Diff(stays, there); diff != "" {
			t.Errorf("%s: what stays (-want +got):\n%s", what, diff)
		}
		if diff := cmp.Diff(stays, reported); diff != "" {
			t.Errorf("%s: what is reported (-want +got):\n%s", what, diff)
		}
	}
}

// TestApprovalStaysRightWhenOneIsMarked fails if the hash that approves a prune of many objects becomes invalid once a
// user marks one of them to stay.
func TestApprovalStaysRightWhenOneIsMarked(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	var manifests []string
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		manifests = append(manifests, strings.Replace(lab.Settings, "settings", name, 1))
	}
	objects := l.Install(l.Prepare(lab.Manifests(manifests...)), nil)
	options := removal.PruneOptions{Owner: l.Owner, Total: 7, Marked: func(ownership.Key) {}}
	held, notes, err := removal.Prune(t.Context(), l.Target, objects, options)
	if err != nil || len(held) != 7 || len(notes) != 1 {
		t.Fatalf("held %v, notes %v, %v", held, notes, err)
	}
	l.Edit(lab.ConfigMaps, "a", `{metadata: {annotations: {helm.sh/resource-policy: keep}}}`)
	options.Approved = removal.Approval(held)
	left, notes, err := removal.Prune(t.Context(), l.Target, held, options)
	if err != nil || len(left) > 0 || len(notes) > 0 {
		t.Errorf("left %v, notes %v, %v", left, notes, err)
	}
	if l.Get(lab.ConfigMaps, l.Unique, "a") == nil || l.Get(lab.ConfigMaps, l.Unique, "b") != nil {
		t.Error("not the one that is marked stays")
	}
}

// TestADefinitionThatItsManifestKeepsIsMarkedAsLeft fails if a definition that its manifest keeps has no mark of the
// add-on that left it, is deleted, or counts as marked in the cluster.
func TestADefinitionThatItsManifestKeepsIsMarkedAsLeft(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	kept := strings.Replace(lab.Definition("Widget", "Namespaced", ""), "{name: widgets.NAME.example.com}",
		"{name: widgets.NAME.example.com, annotations: {helm.sh/resource-policy: keep}}", 1)
	gone := lab.Definition("Gadget", "Namespaced", "")
	inventory := l.Install(l.Prepare(lab.Manifests(kept, gone, lab.Settings)), nil)
	var marked []ownership.Key
	l.Remove(inventory, removal.RemoveOptions{
		LeftBy: "available/operator", CRDs: lab.WhenUnused, Marked: func(key ownership.Key) { marked = append(marked, key) },
	})
	live := l.Get(lab.Definitions, "", "widgets."+l.Unique+".example.com")
	if live == nil || live.GetAnnotations()[kubermaticv1.AnnotationLeftBy] != "available/operator" || live.GetDeletionTimestamp() != nil {
		t.Errorf("the definition is %v", live)
	}
	if len(marked) > 0 || l.Get(lab.Definitions, "", "gadgets."+l.Unique+".example.com") != nil {
		t.Errorf("marked %v, or the other one is not gone", marked)
	}
}
