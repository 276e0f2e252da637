package apply_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/test/lab"
)

// here is the content of what the lab's namespace has, without what controllers write.
func here(l *lab.Lab) map[string]string {
	l.Helper()
	found := map[string]string{}
	for _, where := range []schema.GroupVersionResource{
		lab.ConfigMaps, lab.Secrets, lab.Deployments, {Group: "batch", Version: "v1", Resource: "jobs"},
	} {
		list := lab.Must(l.Others.Resource(where).Namespace(l.Unique).List(l.Context(), metav1.ListOptions{}))(l)
		for _, one := range list.Items {
			found[one.GetKind()+" "+one.GetName()] = fmt.Sprint(one.GetUID(), one.GetLabels(), one.Object["data"], one.Object["spec"])
		}
	}
	return found
}

// TestARehearsalNamesProblemsAndWritesNothing fails if a Patch or a Delete is sent without dryRun (Client), if a remedy goes on as if it
// had an effect (mend, replace), and if objects whose namespace or kind the revision brings count as refused.
func TestARehearsalNamesProblemsAndWritesNothing(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	recreated := strings.Replace(lab.Job, "metadata: {name: once}", "metadata: {name: again, annotations: {addons.kubermatic.k8c.io/update: recreate}}", 1)
	before := lab.Manifests(lab.Deployment, lab.Job, recreated, mapNamed("same"), mapNamed("changed"))
	inventory := l.Install(l.Prepare(before), nil)
	l.Create(lab.ConfigMaps, l.Unique, strings.Replace(lab.Settings, "green", "hunter-two", 1))
	there := here(l)

	after := lab.Manifests(
		strings.ReplaceAll(lab.Deployment, "app: web", "app: shop"), strings.Replace(lab.Job, "once:1", "once:2", 1),
		strings.Replace(recreated, "once:1", "once:2", 1), mapNamed("same"), strings.Replace(mapNamed("changed"), "green", "red", 1),
		lab.Settings, mapNamed("new"), strings.Replace(lab.Settings, "{name: settings}", "{name: elsewhere, namespace: NAME-brought}", 1),
		strings.Replace(lab.Settings, "{name: settings}", "{name: lost, namespace: NAME-missing}", 1),
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: NAME-brought}", lab.Definition("Gadget", "Namespaced", ""),
		lab.Custom("Gadget", "v1", "first"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: wrong}\ndata: {key: [hunter-two]}",
	)
	rollout := apply.NewRollout(l.Owner, l.Prepare(after), apply.Planned(l.Prepare(after), inventory), apply.RolloutOptions{})
	found, err := rollout.Rehearse(t.Context(), l.Target, 100)
	if err != nil {
		t.Fatal(err)
	}
	reasons := lab.Reasons(found.Notes)
	slices.Sort(reasons)
	want := []string{
		"ConfigMap lost: NamespaceMissing", "ConfigMap settings: ObjectExists", "ConfigMap wrong: ObjectInvalid",
		"Deployment web: ImmutableField", "Job once: ImmutableField",
	}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if found.Checked != 10 || found.Unchecked != 2 {
		t.Errorf("%d objects are checked, and %d are not; want 10 and 2 (those of the new namespace and of the new kind)", found.Checked, found.Unchecked)
	}
	if text := fmt.Sprint(found.Notes); strings.Contains(text, "hunter") {
		t.Errorf("a value is shown: %s", text)
	}
	if diff := cmp.Diff(there, here(l)); diff != "" || l.Get(lab.Namespaces, "", l.Unique+"-brought") != nil ||
		l.Get(lab.Definitions, "", "gadgets."+l.Unique+".example.com") != nil {
		t.Errorf("a rehearsal writes (-before +after):\n%s", diff)
	}

	few := apply.NewRollout(l.Owner, l.Prepare(after), inventory, apply.RolloutOptions{})
	calls := l.Calls.During("PATCH ", func() { found, err = few.Rehearse(t.Context(), l.Target, 2) })
	if err != nil || found.Checked+found.Unchecked != 12 || found.Unchecked < 10 || len(calls) > 2 {
		t.Errorf("of two objects: %d are checked, %d are not, with %d patches: %v", found.Checked, found.Unchecked, len(calls), err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	late := apply.NewRollout(l.Owner, l.Prepare(after), inventory, apply.RolloutOptions{})
	if found, err := late.Rehearse(ended, l.Target, 100); err == nil || found.Unchecked != 12 {
		t.Errorf("after its time: %+v, %v", found, err)
	}
}

// TestARehearsalAdoptsNothing fails if objects to adopt, or objects that another installation left, are refused for fields that a rollout
// would make its own first, and if they are made its own.
func TestARehearsalAdoptsNothing(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	l.Create(lab.ConfigMaps, l.Unique, strings.Replace(lab.Settings, "green", "blue", 1))
	l.As("gone", func() { l.Install(l.Prepare(mapNamed("left")), nil) })
	gone := ownership.Owner{ClusterUID: l.Owner.ClusterUID, Installation: "gone"}.ID()
	there := here(l)
	options := apply.RolloutOptions{Adopt: true, NameOf: l.Named()}
	options.Known = []string{gone}
	changed := strings.ReplaceAll(lab.Manifests(lab.Settings, mapNamed("left")), "green", "red")
	found, err := apply.NewRollout(l.Owner, l.Prepare(changed), nil, options).Rehearse(t.Context(), l.Target, 100)
	if err != nil || found.Checked != 2 || len(found.Notes) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
	if diff := cmp.Diff(there, here(l)); diff != "" {
		t.Errorf("a rehearsal writes (-before +after):\n%s", diff)
	}
}
