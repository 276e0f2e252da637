package removal_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/removal"
	"github.com/trellis-addons/trellis/test/lab"
)

// TestLeftoversAreNobodyElses fails if isLeft counts an object of an existing installation as a leftover.
func TestLeftoversAreNobodyElses(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	marks := ownership.HelmMarks{ReleaseName: "agent", ReleaseNamespace: l.Unique}
	l.As("monitoring", func() {
		l.Install(l.Prepare(lab.Settings, func(options *apply.Options) { options.Helm = &marks }), nil)
	})
	claimed := ownership.Inventory{{Version: "v1", Key: ownership.Key{Kind: "ConfigMap", Name: "settings"}}}
	for name, want := range map[string]int{"monitoring": 0, "logging": 1} {
		found := lab.Must(removal.Leftovers(t.Context(), l.Target, claimed, removal.LeftoverOptions{
			Owner: l.Owner, Marks: marks, NameOf: l.Named(name),
		}))(t)
		if len(found) != want {
			t.Errorf("with %q alone, %v are left over, want %d", name, found, want)
		}
	}
}

// AC43: An object with our labels that we did not create is not removed. It fails if Remove or Prune uses the result of
// a list of our label, or findOne accepts another UID for an entry because of the object's label.
func TestForgedLabelsRemoveNothing(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	inventory := l.Install(l.Prepare(lab.TwoMaps), nil)
	l.Delete(lab.ConfigMaps, l.Unique, "other")
	const forged = `{apiVersion: v1, kind: ConfigMap, metadata: {name: WHICH, labels: {addons.kubermatic.k8c.io/installation: ID, ` +
		`addons.kubermatic.k8c.io/created-by: ID}}}`
	for _, name := range []string{"other", "precious"} {
		l.Create(lab.ConfigMaps, l.Unique, strings.NewReplacer("WHICH", name, "ID", l.Owner.ID()).Replace(forged))
	}

	next := l.Install(l.Prepare(lab.Settings), inventory)
	left, notes, err := removal.Prune(t.Context(), l.Target, removal.Prunable(inventory, next), removal.PruneOptions{Owner: l.Owner, Total: 2})
	if err != nil || len(left)+len(notes) > 0 {
		t.Errorf("prune left %v, %v, %v", left, notes, err)
	}
	l.Remove(inventory, removal.RemoveOptions{})
	for _, name := range []string{"other", "precious"} {
		if l.Get(lab.ConfigMaps, l.Unique, name) == nil {
			t.Errorf("ConfigMap %s, which is not ours, is gone", name)
		}
	}
}

// A namespace with objects of a kind that can't be listed could not be finalized; it must not block the removal
// forever. It fails if the census does not handle errors of one kind: the removal would fail each time.
func TestNamespaceStaysWhereAKindCanNotBeListed(t *testing.T) {
	l := lab.New(t)
	inventory := l.Install(l.Prepare(lab.Settings, lab.CreateNamespace), nil)
	l.Create(lab.Definitions, "", strings.Split(lab.Widgets, "\n---\n")[1])
	isServed := func(version string) func() bool {
		return func() bool {
			l.Target.Mapper.Reset()
			_, err := l.Target.Mapper.RESTMapping(schema.GroupKind{Group: l.Unique + ".example.com", Kind: "Widget"}, version)
			return err == nil
		}
	}
	l.Eventually("the kind is served", isServed("v1"))
	l.Create(l.Widgets(), l.Unique, `{apiVersion: NAME.example.com/v1, kind: Widget, metadata: {name: first}}`)
	l.BreakConversion()
	l.Eventually("the version that nobody converts to is served", isServed("v2"))
	l.Remove(inventory, removal.RemoveOptions{})
	if live := l.Get(lab.Namespaces, "", l.Unique); live == nil || live.GetDeletionTimestamp() != nil {
		t.Error("the namespace is gone although not everything in it could be looked at")
	}
}

// TestNamespaceStaysForWhatHooksKeep fails if our namespace is removed with data that a hook created, with objects
// marked to stay, or with an object that only looks like our hook; and if it stays for other leftovers of hooks.
func TestNamespaceStaysForWhatHooksKeep(t *testing.T) {
	const claim = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: left, annotations: {helm.sh/hook: pre-install}}, ` +
		`spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`
	leftover := func(annotation string) string {
		return `{apiVersion: v1, kind: ConfigMap, metadata: {name: left, annotations: {helm.sh/hook: pre-install` + annotation + `}}}`
	}
	for name, test := range map[string]struct {
		hook          string
		foreign, goes bool
	}{
		"leftover": {hook: leftover(""), goes: true},
		"keep":     {hook: leftover(", helm.sh/resource-policy: keep")},
		"orphan":   {hook: leftover(`, addons.kubermatic.k8c.io/on-delete: orphan`)},
		"data":     {hook: claim},
		"forged":   {hook: leftover(""), foreign: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := lab.New(t)
			inventory := l.Install(l.Prepare(lab.Settings, lab.CreateNamespace), nil)
			hook := l.Prepare(test.hook)[0]
			if test.foreign {
				l.CreateObject(lab.ConfigMaps, l.Unique, hook)
			} else if uid, refused, err := apply.CreateHook(t.Context(), l.Target, l.Owner, apply.Hook{Object: hook, Run: "1"}); err != nil || uid == "" {
				t.Fatalf("%s: %v", refused, err)
			}
			l.Remove(inventory, removal.RemoveOptions{Namespace: l.Unique})
			if gone := l.Get(lab.Namespaces, "", l.Unique) == nil; gone != test.goes {
				t.Errorf("the namespace is gone: %t, want %t", gone, test.goes)
			}
		})
	}
}
