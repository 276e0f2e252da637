package apply_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/apply"
)

// Red when a step does not wait for the one before (the definition would go first and hide the finalizer), or when keeps is
// not asked.
func TestRemoveTakesWhatIsOursAndNothingElse(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*lab)
		stays   []string
		why     string
	}{
		"everything is ours": {prepare: func(*lab) {}, why: "nobody else has anything there"},
		"a foreign object in our namespace": {
			prepare: func(l *lab) {
				l.create(configMaps, l.name, `{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign}}`)
			},
			stays: []string{"namespace", "foreign"}, why: "a namespace with somebody's object stays",
		},
		"a foreign custom resource": {
			prepare: func(l *lab) {
				l.namespaceNamed(l.name + "-b")
				l.create(l.widgets(), l.name+"-b", `{apiVersion: NAME.example.com/v1, kind: Widget, metadata: {name: foreign}}`)
			},
			stays: []string{"definition"}, why: "a definition that holds others' objects stays",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			inventory := l.install(l.prepare(widgets), nil)
			test.prepare(l)
			told := ""
			l.remove(inventory, apply.RemoveOptions{CRDs: whenUnused, Kept: func(namespace, why string) { told = namespace + ": " + why }})
			there := map[string]bool{
				"namespace":  l.get(namespaces, "", l.name) != nil,
				"definition": l.get(definitions, "", "widgets."+l.name+".example.com") != nil,
				"foreign":    l.get(configMaps, l.name, "foreign") != nil,
				"settings":   l.get(configMaps, l.name, "settings") != nil,
				"widget":     l.get(l.widgets(), l.name, "first") != nil,
			}
			if want := l.name + ": it has configmaps foreign of somebody else"; there["foreign"] != (told == want) || !there["foreign"] && told != "" {
				t.Errorf("%s: told %q of what stays", test.why, told)
			}
			for what, exists := range there {
				if exists != slices.Contains(test.stays, what) {
					t.Errorf("%s: %s exists: %t", test.why, what, exists)
				}
			}
		})
	}
}

// Red when leftovers with an owner hold the namespace back, or a release Secret of ours does: Pods and ReplicaSets are still
// there when their Deployment is gone.
func TestNamespaceGoesWithLeftovers(t *testing.T) {
	l := newLab(t)
	inventory := l.install(l.prepare(deployment, createNamespace), nil)
	l.eventually("the Deployment is healthy", func() bool { return l.assess(inventory).Healthy == 2 })
	l.create(secrets, l.name, `{apiVersion: v1, kind: Secret, metadata: {name: sh.helm.release.v1.web.v1, labels: `+
		`{owner: helm, addons.kubermatic.k8c.io/installation: `+l.owner.ID()+`}}}`)
	var once sync.Once
	l.calls.before = func(call string) { // the garbage collector would take it away, so it is made just before the look
		if call == "GET /api/v1/namespaces/"+l.name+"/configmaps" {
			once.Do(func() {
				l.create(configMaps, l.name, `{apiVersion: v1, kind: ConfigMap, metadata: {name: leftover, ownerReferences: `+
					`[{apiVersion: apps/v1, kind: Deployment, name: web, uid: `+string(inventory[1].UID)+`}]}}`)
			})
		}
	}
	l.remove(inventory, apply.RemoveOptions{Namespace: l.name})
	if l.get(namespaces, "", l.name) != nil {
		t.Error("the namespace is still there")
	}
}

func (l *lab) namespaceNamed(name string) {
	l.Helper()
	l.create(namespaces, "", `{apiVersion: v1, kind: Namespace, metadata: {name: `+name+`}}`)
}

// Red when removal goes on past a step that is not done: the rest would go while the finalizer still needs its controller.
func TestRemoveWaitsForCustomResources(t *testing.T) {
	l := newLab(t)
	inventory := l.install(l.prepare(widgets), nil)
	l.edit(l.widgets(), "first", `{metadata: {finalizers: [example.com/hold]}}`)
	options := apply.RemoveOptions{Owner: l.owner, CRDs: whenUnused}

	left, blocked, err := apply.Remove(t.Context(), l.target, inventory, options)
	if err != nil || len(left) != len(inventory) {
		t.Fatalf("left %v, %v; want everything to wait for the custom resource", left, err)
	}
	if len(blocked) != 1 || !strings.Contains(blocked[0].Message, "example.com/hold") {
		t.Errorf("blocked does not name the finalizer: %v", blocked)
	}
	if l.get(configMaps, l.name, "settings") == nil {
		t.Error("the rest went before the custom resource")
	}

	l.edit(l.widgets(), "first", `{metadata: {finalizers: null}}`)
	l.remove(left, options)
}

// AC43. Red when a Namespace that we did not make, or an object that replaced ours, is deleted.
func TestRemoveLeavesWhatWasThereBefore(t *testing.T) {
	l := newLab(t)
	l.namespace()
	inventory := l.install(l.prepare(twoMaps, createNamespace), nil)
	l.delete(configMaps, l.name, "other")
	l.create(configMaps, l.name, `{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}`)
	l.remove(inventory, apply.RemoveOptions{CRDs: whenUnused, KeepNamespaces: nil})
	if live := l.get(namespaces, "", l.name); live == nil || live.GetDeletionTimestamp() != nil {
		t.Error("the namespace that was there before is gone")
	}
	if l.get(configMaps, l.name, "other") == nil {
		t.Error("the object that replaced ours is gone")
	}
	if l.get(configMaps, l.name, "settings") != nil {
		t.Error("our object is still there")
	}
}

// AC43. Red when deletes carry no UID: an object that is replaced between the look and the delete would go.
func TestDeletesCarryUIDs(t *testing.T) {
	l := newLab(t)
	l.namespace()
	inventory := l.install(l.prepare(settings), nil)
	var once sync.Once
	l.calls.before = func(call string) {
		if strings.HasPrefix(call, "DELETE ") {
			once.Do(func() {
				l.delete(configMaps, l.name, "settings")
				l.create(configMaps, l.name, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}`)
			})
		}
	}
	l.remove(inventory, apply.RemoveOptions{})
	if l.get(configMaps, l.name, "settings") == nil {
		t.Error("the object that took the place of ours was deleted")
	}
}

// Red when entries without a UID are taken for gone (a crash between a write and its record would leave an orphan), or are
// deleted without a look at the manager.
func TestRemoveAfterCrashGoesByTheIntent(t *testing.T) {
	l := newLab(t)
	l.namespace()
	objects := l.prepare(twoMaps)
	l.install(objects[:1], nil)
	l.create(configMaps, l.name, `{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}`)
	l.remove(apply.Planned(objects, nil), apply.RemoveOptions{})
	if l.get(configMaps, l.name, "settings") != nil {
		t.Error("what was written before the crash is still there")
	}
	if l.get(configMaps, l.name, "other") == nil {
		t.Error("a planned name that somebody else used is gone")
	}
}

// Red when on-delete or Helm's keep policy is not read, or when KeepNamespaces is not.
func TestWhatStaysBehind(t *testing.T) {
	l := newLab(t)
	manifests := strings.Replace(twoMaps, "{name: settings}", `{name: settings, annotations: {"helm.sh/resource-policy": keep}}`, 1)
	manifests = strings.Replace(manifests, "{name: other}", "{name: other, annotations: {addons.kubermatic.k8c.io/on-delete: orphan}}", 1)
	inventory := l.install(l.prepare(manifests, createNamespace), nil)
	l.remove(inventory, apply.RemoveOptions{CRDs: whenUnused})
	for _, name := range []string{"settings", "other"} {
		if l.get(configMaps, l.name, name) == nil {
			t.Errorf("ConfigMap %s is gone", name)
		}
	}
	if live := l.get(namespaces, "", l.name); live == nil || live.GetDeletionTimestamp() != nil {
		t.Error("the namespace went with what was to stay in it")
	}

	empty := newLab(t)
	inventory = empty.install(empty.prepare(settings, createNamespace), nil)
	empty.remove(inventory, apply.RemoveOptions{KeepNamespaces: []string{empty.name}})
	if live := empty.get(namespaces, "", empty.name); live == nil || live.GetDeletionTimestamp() != nil {
		t.Error("the namespace that another installation targets is gone")
	}
}

const claim = "\n---\n" + `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}`

// AC43, AC47. Red when Prune goes by name, forgets the guarded kinds, or takes a wrong hash.
func TestPrune(t *testing.T) {
	l := newLab(t)
	l.namespace()
	old := l.install(l.prepare(twoMaps+claim), nil)
	next := l.install(l.prepare(settings), old)
	stale := apply.Prunable(old, next)
	l.delete(configMaps, l.name, "other")
	l.create(configMaps, l.name, `{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}`)
	options := apply.PruneOptions{Owner: l.owner, Total: len(old), Approved: "no such hash"}

	left, notes, err := apply.Prune(t.Context(), l.target, stale, options)
	if err != nil {
		t.Fatal(err)
	}
	if l.get(configMaps, l.name, "other") == nil {
		t.Error("an object of the same name and another UID was pruned")
	}
	want := []string{"PersistentVolumeClaim data: PruneNeedsApproval"}
	if diff := cmp.Diff(want, reasons(notes)); diff != "" || len(left) != 1 {
		t.Fatalf("left %v, notes (-want +got):\n%s", left, diff)
	}

	options.Approved = apply.Approval(left)
	if !strings.Contains(notes[0].Message, options.Approved) {
		t.Errorf("the message does not show the hash: %s", notes[0].Message)
	}
	left, notes, err = apply.Prune(t.Context(), l.target, left, options)
	if err != nil || len(left)+len(notes) > 0 {
		t.Errorf("approved, but left %v, %v, %v", left, notes, err)
	}
}

// AC47. Red when the share is not computed of the old inventory.
func TestPruneOfMoreThanHalfNeedsApproval(t *testing.T) {
	l := newLab(t)
	l.namespace()
	var manifests []string
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		manifests = append(manifests, strings.Replace(settings, "settings", name, 1))
	}
	old := l.install(l.prepare(strings.Join(manifests, "\n---\n")), nil)
	left, notes, err := apply.Prune(t.Context(), l.target, old[:6], apply.PruneOptions{Owner: l.owner, Total: len(old)})
	if err != nil || len(left) != 6 || len(notes) != 1 {
		t.Fatalf("left %v, notes %v, %v; want all six held back", left, notes, err)
	}
	for _, entry := range left {
		if !strings.Contains(notes[0].Message, entry.Key.String()) {
			t.Errorf("it does not say that %s is to go: %s", entry.Key, notes[0].Message)
		}
	}
	left, notes, err = apply.Prune(t.Context(), l.target, old[:4], apply.PruneOptions{Owner: l.owner, Total: len(old)})
	if err != nil || len(left)+len(notes) > 0 {
		t.Errorf("left %v, notes %v, %v; want four pruned", left, notes, err)
	}
}
