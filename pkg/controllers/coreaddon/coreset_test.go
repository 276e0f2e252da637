package coreaddon_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// offered replaces a merged Core catalogue of one add-on: versions with the tag of their image, and a range of
// Kubernetes, by name.
func (w *world) offered(name string, versions ...[3]string) *catalogue.Entry {
	w.t.Helper()
	object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.catalogue, Name: name, Labels: map[string]string{v1.LabelRole: v1.RoleMerged},
	}}
	about := v1.Addon{Name: v1.AddonName(name)}
	for _, one := range versions {
		made := given.Version(one[0], &v1.Source{Docker: &v1.ImageSource{Image: "registry.example/" + name + ":" + one[1]}})
		if one[2] != "" {
			made.Constraints = &v1.Constraints{K8sVersion: v1.VersionRange(one[2])}
		}
		about.Versions = append(about.Versions, made)
	}
	object.Spec = v1.AddonCatalogueSpec{Type: v1.CatalogueCore, Addons: []v1.Addon{about}}
	object.Annotations = map[string]string{v1.AnnotationKKPVersion: "2.31.0", v1.AnnotationDigest: fmt.Sprint(versions)}
	if w.key != nil {
		content, err := catalogue.ContentDigest(object)
		expect.NoError(w.t, err)
		object.Annotations[v1.AnnotationMark] = catalogue.Mark(w.key, object, content)
	}
	before := &v1.AddonCatalogue{}
	if w.seed.Get(w.t.Context(), client.ObjectKeyFromObject(object), before) == nil {
		object.ResourceVersion = before.ResourceVersion
		expect.Update(w.t, w.seed, object)
	} else {
		expect.Create(w.t, w.seed, object)
	}
	entry, err := catalogue.NewEntry(object)
	expect.NoError(w.t, err)
	return entry
}

// played is a stand-in of the installation controller: it applies the version that an installation requests and its
// entry has, and counts changes in user clusters. Clusters whose namespaces are in stuck do nothing.
type played struct {
	w       *world
	entry   *catalogue.Entry
	newest  string
	broken  string
	applied int
	// cause is a cluster's own reason for its failure.
	cause string
	stuck map[string]bool
}

// play writes the status of each installation that differs, once.
func (p *played) play() {
	p.w.t.Helper()
	var list v1.AddonInstallationList
	expect.List(p.w.t, p.w.seed, &list, client.MatchingLabels{v1.LabelManagedBy: v1.ManagedByCoreAddons})
	for i := range list.Items {
		live := &list.Items[i]
		if p.stuck[live.Namespace] {
			continue
		}
		before := live.DeepCopy()
		version, digest := live.Spec.AddonRef.Version, live.Spec.AddonRef.Digest
		if version == "" {
			version = p.newest
		}
		_, origin := p.entry.Version(version)
		isThere := digest == "" || digest == origin.Content
		if digest == "" {
			digest = origin.Content
		}
		last := live.Status.LastApplied
		if isThere && (last == nil || last.Version != version || last.EntryDigest != digest) {
			at := metav1.Now().Rfc3339Copy()
			live.Status.LastApplied = &v1.AppliedState{Addon: "rbac", Version: version, EntryDigest: digest, Time: &at}
			live.Status.Version = version
			p.applied++
		}
		ready := metav1.Condition{Type: v1.ConditionReady, Status: "True", Reason: v1.ReasonReady, ObservedGeneration: live.Generation}
		if live.Status.Cause = ""; live.Status.LastApplied.EntryDigest == p.broken {
			ready.Status, ready.Reason, ready.Message, live.Status.Cause = "False", v1.ReasonRolledBack, "it went back", p.cause
		}
		conditions.Set(&live.Status.Conditions, ready)
		if equality.Semantic.DeepEqual(before.Status, live.Status) {
			continue
		}
		if err := p.w.seed.Status().Patch(p.w.t.Context(), live, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			p.w.t.Fatal(err)
		}
	}
}

// until plays until a condition holds.
func (p *played) until(holds func() error) {
	p.w.t.Helper()
	expect.Eventually(p.w.t, 3*expect.Patience, func() error {
		p.play()
		return holds()
	})
}

// coreSet is a copy of type Core with a canary group, clusters one at a time.
func (w *world) coreSet(changes ...func(*v1.AddonSet)) *v1.AddonSet {
	w.t.Helper()
	one := intstr.FromInt32(1)
	made := &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.catalogue, Name: "core", Labels: map[string]string{v1.LabelRole: v1.RoleCopy},
		Annotations: map[string]string{v1.AnnotationSeed: "seed", v1.AnnotationCreated: "2026-01-01T00:00:00Z"},
	}}
	made.Spec = v1.AddonSetSpec{
		Type: v1.AddonSetCore, ClusterSelector: &metav1.LabelSelector{},
		Rollout: &v1.Rollout{
			Pace: v1.Pace{
				MaxConcurrency: &one, Soak: &metav1.Duration{Duration: time.Second}, ProgressDeadline: &metav1.Duration{Duration: time.Minute},
			},
			Groups: []v1.RolloutGroup{{Name: "canary", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"ring": "0"}}}},
		},
	}
	for _, change := range changes {
		change(made)
	}
	w.mark(made)
	expect.Create(w.t, w.seed, made)
	w.t.Cleanup(func() {
		free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		ctx := context.WithoutCancel(w.t.Context())
		_ = w.seed.Patch(ctx, made, free)
		_ = w.seed.Delete(ctx, made)
	})
	return made
}

// atOnce is a set without a rollout; one without groups has all clusters in rest.
func atOnce(of *v1.AddonSet)    { of.Spec.Rollout = nil }
func ungrouped(of *v1.AddonSet) { of.Spec.Rollout.Groups = nil }

func named(name string) func(*v1.AddonSet) {
	return func(of *v1.AddonSet) { of.Name = name }
}

// mark marks a copy as the distributor does.
func (w *world) mark(of *v1.AddonSet) {
	w.t.Helper()
	if w.key == nil {
		return
	}
	content, err := catalogue.SetDigest(&of.Spec)
	expect.NoError(w.t, err)
	of.Annotations[v1.AnnotationMark] = catalogue.SetMark(w.key, of, content)
}

// change changes a copy as the distributor does.
func (w *world) change(of *v1.AddonSet, change func(*v1.AddonSet)) {
	w.t.Helper()
	expect.Change(w.t, w.seed, of, func(of *v1.AddonSet) {
		change(of)
		w.mark(of)
	})
}

func (w *world) setSays(of *v1.AddonSet, reason string) error {
	if err := w.seed.Get(w.t.Context(), client.ObjectKeyFromObject(of), of); err != nil {
		return err
	}
	status := "False"
	if reason == v1.ReasonComplete {
		status = "True"
	}
	return expect.Condition(of, v1.ConditionReady, status, reason)
}

// at are the clusters whose rbac requests a version, by number.
func (w *world) at(clusters []*kkpv1.Cluster, holds func(*v1.AddonInstallation) bool) []int {
	w.t.Helper()
	var numbers []int
	for i, of := range clusters {
		found := installationOf(of, "rbac")
		if w.seed.Get(w.t.Context(), client.ObjectKeyFromObject(found), found) == nil && holds(found) {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

// TestACoreSetPinsThenMovesCanariesFirst is the story of a Core set. The test fails when its creation writes more
// than pins, when changed content reaches another cluster before the canary shows that it works, when a halt doesn't
// hold, when a Kubernetes upgrade waits for it, when the copy has other events, or when pins outlive the set.
func TestACoreSetPinsThenMovesCanariesFirst(t *testing.T) {
	pinThenMove(t, 50)
}

// BenchmarkACoreSetOverManyClusters is bar 8, with the time of each of its parts.
func BenchmarkACoreSetOverManyClusters(b *testing.B) {
	for range b.N {
		pinThenMove(b, 500)
	}
}

func pinThenMove(t testing.TB, size int) {
	w := newWorld(t)
	entry := w.offered("rbac", [3]string{"1.0.0", "a", "< 1.37"}, [3]string{"2.0.0", "a", ">= 1.37"})
	clusters := w.clusters(size)
	expect.Change(w.t, w.seed, clusters[0], func(c *kkpv1.Cluster) { c.Labels["ring"] = "0" })
	w.start()
	w.everywhere(clusters, "rbac")
	player := &played{w: w, entry: entry, newest: "1.0.0"}
	player.play()
	before, applied := w.writes.number.Load(), player.applied
	if before != int64(size) {
		t.Errorf("%d writes without a set for %d installations", before, size)
	}
	begin := time.Now()
	part := func(what string) {
		t.Logf("%s: %s, %d writes of installations", what, time.Since(begin).Round(time.Millisecond), w.writes.number.Load()-before)
		begin = time.Now()
	}

	of := w.coreSet()
	_, origin := entry.Version("1.0.0")
	isPinned := func(content string) func(*v1.AddonInstallation) bool {
		return func(found *v1.AddonInstallation) bool {
			return found.Spec.AddonRef == v1.AddonReference{Name: "rbac", Version: "1.0.0", Digest: content}
		}
	}
	player.until(func() error {
		if at := w.at(clusters, isPinned(origin.Content)); len(at) != size {
			return fmt.Errorf("%d are pinned", len(at))
		}
		return w.setSays(of, v1.ReasonComplete)
	})
	if writes := w.writes.number.Load() - before; writes != int64(size) || player.applied != applied {
		t.Errorf("%d writes and %d changes of user clusters for %d pins", writes, player.applied-applied, size)
	}
	w.reported("RolloutStarted,Completed")
	part("pins")

	player.play() // Ready as pinned: later moves begin in healthy clusters
	// Content changes under the version: only the canary has it, and halts.
	player.entry = w.offered("rbac", [3]string{"1.0.0", "b", "< 1.37"}, [3]string{"2.0.0", "c", ">= 1.37"})
	_, bad := player.entry.Version("1.0.0")
	player.broken = bad.Content
	player.until(func() error { return w.setSays(of, v1.ReasonHalted) })
	if at := w.at(clusters, isPinned(bad.Content)); !slices.Equal(at, []int{0}) {
		t.Errorf("%v have the broken content", at)
	}
	w.reported("RolloutStarted,GroupOpened,Halted")
	part("the canary halts")
	expect.Change(t, w.seed, of, func(of *v1.AddonSet) { of.Annotations[v1.AnnotationGate] = rollout.GateValue(of.Status.Revision, 2) })

	// A Kubernetes upgrade moves its cluster at once, also now.
	statusBefore := clusters[7].DeepCopy()
	clusters[7].Status.Versions.ControlPlane = "v1.37.1"
	expect.PatchStatus(t, w.seed, clusters[7], client.MergeFrom(statusBefore))
	isNew := func(found *v1.AddonInstallation) bool { return found.Spec.AddonRef.Version == "2.0.0" }
	player.until(func() error {
		if at := w.at(clusters, isNew); !slices.Equal(at, []int{7}) {
			return fmt.Errorf("%v have the version for the new Kubernetes", at)
		}
		return w.setSays(of, v1.ReasonHalted)
	})
	if at := w.at(clusters, isPinned(origin.Content)); len(at) != size-2 {
		t.Errorf("%d are at what they had", len(at))
	}
	w.reported("") // the halt continues, and is not reported again
	part("an upgrade of Kubernetes")
	counts, reason, moves := w.controller.SetFigures()
	if counts.Selected != int32(size) || counts.Failed != 1 || reason != v1.ReasonHalted || moves != 2 {
		t.Errorf("the metrics tell of %+v, %s and %d moves", counts, reason, moves)
	}

	// The set is deleted: pins are removed.
	expect.Change(t, w.seed, of, func(of *v1.AddonSet) { of.Annotations[v1.AnnotationConfirmDeletion] = of.Name })
	expect.Delete(t, w.seed, of)
	player.until(func() error {
		at := w.at(clusters, func(found *v1.AddonInstallation) bool { return found.Spec.AddonRef == v1.AddonReference{Name: "rbac"} })
		if len(at) != size {
			return fmt.Errorf("%d are free", len(at))
		}
		return nil
	})
	part("the set goes")
}
