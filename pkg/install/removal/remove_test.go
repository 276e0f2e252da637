package removal_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/removal"
	"github.com/trellis-addons/trellis/test/lab"
)

// TestRemoveTakesWhatIsOursAndNothingElse fails if a step does not wait for the previous one (the definition would be
// deleted first and hide the finalizer), or if keeps is not called.
func TestRemoveTakesWhatIsOursAndNothingElse(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*lab.Lab)
		stays   []string
		why     string
	}{
		"everything is ours": {prepare: func(*lab.Lab) {}, why: "nobody else has anything there"},
		"a foreign object in our namespace": {
			prepare: func(l *lab.Lab) {
				l.Create(lab.ConfigMaps, l.Unique, `{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign}}`)
			},
			stays: []string{"namespace", "foreign"}, why: "a namespace with somebody's object stays",
		},
		"a foreign custom resource": {
			prepare: func(l *lab.Lab) {
				l.NamespaceNamed(l.Unique + "-b")
				l.Create(l.Widgets(), l.Unique+"-b", `{apiVersion: NAME.example.com/v1, kind: Widget, metadata: {name: foreign}}`)
			},
			stays: []string{"definition"}, why: "a definition that holds others' objects stays",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := lab.New(t)
			inventory := l.Install(l.Prepare(lab.Widgets), nil)
			test.prepare(l)
			kept := ""
			l.Remove(inventory, removal.RemoveOptions{CRDs: lab.WhenUnused, Kept: func(namespace, why string) { kept = namespace + ": " + why }})
			there := map[string]bool{
				"namespace":  l.Get(lab.Namespaces, "", l.Unique) != nil,
				"definition": l.Get(lab.Definitions, "", "widgets."+l.Unique+".example.com") != nil,
				"foreign":    l.Get(lab.ConfigMaps, l.Unique, "foreign") != nil,
				"settings":   l.Get(lab.ConfigMaps, l.Unique, "settings") != nil,
				"widget":     l.Get(l.Widgets(), l.Unique, "first") != nil,
			}
			if want := l.Unique + ": it has configmaps foreign, which this installation did not create"; there["foreign"] != (kept == want) || !there["foreign"] && kept != "" {
				t.Errorf("%s: told %q of what stays", test.why, kept)
			}
			for what, exists := range there {
				if exists != slices.Contains(test.stays, what) {
					t.Errorf("%s: %s exists: %t", test.why, what, exists)
				}
			}
		})
	}
}

// TestNamespaceGoesWithLeftovers fails if leftovers with an owner keep the namespace, or a release Secret of ours does:
// Pods and ReplicaSets still exist when their Deployment is gone.
func TestNamespaceGoesWithLeftovers(t *testing.T) {
	l := lab.New(t)
	inventory := l.Install(l.Prepare(lab.Deployment, lab.CreateNamespace), nil)
	l.Eventually("the Deployment is healthy", func() bool { return l.Assess(inventory).Healthy == 2 })
	l.Create(lab.Secrets, l.Unique, `{apiVersion: v1, kind: Secret, metadata: {name: sh.helm.release.v1.web.v1, labels: `+
		`{owner: helm, addons.kubermatic.k8c.io/installation: `+l.Owner.ID()+`}}}`)
	var once sync.Once
	l.Calls.Before = func(call string) { // the garbage collector would delete it, so it is created just before the read
		if call == "GET /api/v1/namespaces/"+l.Unique+"/configmaps" {
			once.Do(func() {
				l.Create(lab.ConfigMaps, l.Unique, `{apiVersion: v1, kind: ConfigMap, metadata: {name: leftover, ownerReferences: `+
					`[{apiVersion: apps/v1, kind: Deployment, name: web, uid: `+string(inventory[1].UID)+`}]}}`)
			})
		}
	}
	l.Remove(inventory, removal.RemoveOptions{Namespace: l.Unique})
	if l.Get(lab.Namespaces, "", l.Unique) != nil {
		t.Error("the namespace is still there")
	}
}

// TestRemoveWaitsForCustomResources fails if removal continues after an incomplete step: other objects would be deleted
// while the finalizer still needs its controller.
func TestRemoveWaitsForCustomResources(t *testing.T) {
	l := lab.New(t)
	inventory := l.Install(l.Prepare(lab.Widgets), nil)
	l.Edit(l.Widgets(), "first", `{metadata: {finalizers: [example.com/hold]}}`)
	options := removal.RemoveOptions{Owner: l.Owner, CRDs: lab.WhenUnused}

	left, blocked, err := removal.Remove(t.Context(), l.Target, inventory, options)
	if err != nil || len(left) != len(inventory) {
		t.Fatalf("left %v, %v; want everything to wait for the custom resource", left, err)
	}
	if len(blocked) != 1 || !strings.Contains(blocked[0].Message, "example.com/hold") {
		t.Errorf("blocked does not name the finalizer: %v", blocked)
	}
	if l.Get(lab.ConfigMaps, l.Unique, "settings") == nil {
		t.Error("the rest went before the custom resource")
	}

	l.Edit(l.Widgets(), "first", `{metadata: {finalizers: null}}`)
	l.Remove(left, options)
}

// AC43: Objects that existed before the add-on, or replaced its objects, are not removed. It fails if a Namespace that
// we did not create, or an object that replaced ours, is deleted.
func TestRemoveLeavesWhatWasThereBefore(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	inventory := l.Install(l.Prepare(lab.TwoMaps, lab.CreateNamespace), nil)
	l.Delete(lab.ConfigMaps, l.Unique, "other")
	l.Create(lab.ConfigMaps, l.Unique, `{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}`)
	l.Remove(inventory, removal.RemoveOptions{CRDs: lab.WhenUnused, KeepNamespaces: nil})
	if live := l.Get(lab.Namespaces, "", l.Unique); live == nil || live.GetDeletionTimestamp() != nil {
		t.Error("the namespace that was there before is gone")
	}
	if l.Get(lab.ConfigMaps, l.Unique, "other") == nil {
		t.Error("the object that replaced ours is gone")
	}
	if l.Get(lab.ConfigMaps, l.Unique, "settings") != nil {
		t.Error("our object is still there")
	}
}

// AC43: An object that is replaced just before its deletion stays. It fails if deletes carry no UID: an object that is
// replaced between the read and the delete would be deleted.
func TestDeletesCarryUIDs(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	inventory := l.Install(l.Prepare(lab.Settings), nil)
	var once sync.Once
	l.Calls.Before = func(call string) {
		if strings.HasPrefix(call, "DELETE ") {
			once.Do(func() {
				l.Delete(lab.ConfigMaps, l.Unique, "settings")
				l.Create(lab.ConfigMaps, l.Unique, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}`)
			})
		}
	}
	l.Remove(inventory, removal.RemoveOptions{})
	if l.Get(lab.ConfigMaps, l.Unique, "settings") == nil {
		t.Error("the object that took the place of ours was deleted")
	}
}

// TestRemoveAfterCrashGoesByTheIntent fails if entries without a UID count as gone (a crash between a write and its
// record would leave an orphan), or are deleted without reading the manager.
func TestRemoveAfterCrashGoesByTheIntent(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	objects := l.Prepare(lab.TwoMaps)
	l.Install(objects[:1], nil)
	l.Create(lab.ConfigMaps, l.Unique, `{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}`)
	l.Remove(apply.Planned(objects, nil), removal.RemoveOptions{})
	if l.Get(lab.ConfigMaps, l.Unique, "settings") != nil {
		t.Error("what was written before the crash is still there")
	}
	if l.Get(lab.ConfigMaps, l.Unique, "other") == nil {
		t.Error("a planned name that somebody else used is gone")
	}
}

// TestWhatStaysBehind fails if on-delete, Helm's keep policy or the mark of Open Cluster Management is not read, or if
// KeepNamespaces is not.
func TestWhatStaysBehind(t *testing.T) {
	l := lab.New(t)
	manifests := strings.Replace(lab.TwoMaps, "{name: settings}", `{name: settings, annotations: {"helm.sh/resource-policy": keep}}`, 1)
	manifests = strings.Replace(manifests, "{name: other}", "{name: other, annotations: {addons.kubermatic.k8c.io/on-delete: orphan}}", 1)
	manifests = lab.Manifests(manifests, strings.Replace(lab.Settings, "{name: settings}",
		`{name: agent, annotations: {addon.open-cluster-management.io/deletion-orphan: ""}}`, 1))
	inventory := l.Install(l.Prepare(manifests, lab.CreateNamespace), nil)
	l.Remove(inventory, removal.RemoveOptions{CRDs: lab.WhenUnused})
	for _, name := range []string{"settings", "other", "agent"} {
		if l.Get(lab.ConfigMaps, l.Unique, name) == nil {
			t.Errorf("ConfigMap %s is gone", name)
		}
	}
	if live := l.Get(lab.Namespaces, "", l.Unique); live == nil || live.GetDeletionTimestamp() != nil {
		t.Error("the namespace went with what was to stay in it")
	}

	empty := lab.New(t)
	inventory = empty.Install(empty.Prepare(lab.Settings, lab.CreateNamespace), nil)
	empty.Remove(inventory, removal.RemoveOptions{KeepNamespaces: []string{empty.Unique}})
	if live := empty.Get(lab.Namespaces, "", empty.Unique); live == nil || live.GetDeletionTimestamp() != nil {
		t.Error("the namespace that another installation targets is gone")
	}
}

// AC43, AC47: Only recorded objects are pruned, by their UID, and guarded kinds after an approval. It fails if Prune
// uses names, ignores guarded kinds, or accepts a wrong hash.
func TestPrune(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	old := l.Install(l.Prepare(lab.TwoMaps+lab.Claim), nil)
	next := l.Install(l.Prepare(lab.Settings), old)
	stale := removal.Prunable(old, next)
	l.Delete(lab.ConfigMaps, l.Unique, "other")
	l.Create(lab.ConfigMaps, l.Unique, `{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}`)
	options := removal.PruneOptions{Owner: l.Owner, Total: len(old), Approved: "no such hash"}

	left, notes, err := removal.Prune(t.Context(), l.Target, stale, options)
	if err != nil {
		t.Fatal(err)
	}
	if l.Get(lab.ConfigMaps, l.Unique, "other") == nil {
		t.Error("an object of the same name and another UID was pruned")
	}
	want := []string{"PersistentVolumeClaim data: PruneNeedsApproval"}
	if diff := cmp.Diff(want, lab.Reasons(notes)); diff != "" || len(left) != 1 {
		t.Fatalf("left %v, notes (-want +got):\n%s", left, diff)
	}

	options.Approved = removal.Approval(left)
	if !strings.Contains(notes[0].Message, options.Approved) {
		t.Errorf("the message does not show the hash: %s", notes[0].Message)
	}
	left, notes, err = removal.Prune(t.Context(), l.Target, left, options)
	if err != nil || len(left)+len(notes) > 0 {
		t.Errorf("approved, but left %v, %v, %v", left, notes, err)
	}
}

// AC47: More than half of the recorded objects are pruned only after an approval. It fails if the share is not computed
// from the old inventory.
func TestPruneOfMoreThanHalfNeedsApproval(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	var manifests []string
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		manifests = append(manifests, strings.Replace(lab.Settings, "settings", name, 1))
	}
	old := l.Install(l.Prepare(strings.Join(manifests, "\n---\n")), nil)
	left, notes, err := removal.Prune(t.Context(), l.Target, old[:6], removal.PruneOptions{Owner: l.Owner, Total: len(old)})
	if err != nil || len(left) != 6 || len(notes) != 1 {
		t.Fatalf("left %v, notes %v, %v; want all six held back", left, notes, err)
	}
	for _, entry := range left {
		if !strings.Contains(notes[0].Message, entry.Key.String()) {
			t.Errorf("it does not say that %s is to go: %s", entry.Key, notes[0].Message)
		}
	}
	left, notes, err = removal.Prune(t.Context(), l.Target, old[:4], removal.PruneOptions{Owner: l.Owner, Total: len(old)})
	if err != nil || len(left)+len(notes) > 0 {
		t.Errorf("left %v, notes %v, %v; want four pruned", left, notes, err)
	}
}

// TestManyArePrunedWherePermitted fails if a permission to prune many objects has no effect, or also deletes data.
func TestManyArePrunedWherePermitted(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	var manifests []string
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		manifests = append(manifests, strings.Replace(lab.Settings, "settings", name, 1))
	}
	old := l.Install(l.Prepare(strings.Join(manifests, "\n---\n")+lab.Claim), nil)
	left, notes, err := removal.Prune(t.Context(), l.Target, old, removal.PruneOptions{Owner: l.Owner, Total: len(old), Many: true})
	if err != nil || len(left) != 1 {
		t.Fatalf("left %v, notes %v, %v; want the claim", left, notes, err)
	}
	if diff := cmp.Diff([]string{"PersistentVolumeClaim data: PruneNeedsApproval"}, lab.Reasons(notes)); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}
