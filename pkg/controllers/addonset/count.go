package addonset

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

// count counts every cluster if the set, its revision or its dependencies changed, in one walk over the caches. They
// are read under the mutex, so that concurrent writes count.
func (r *Reconciler) count(ctx context.Context, f *setFacts) *loop.Outcome {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if f.running.counted {
		return nil
	}
	f.running.isHeld = false
	seen, present := map[string]bool{}, map[cluster.Key]bool{}
	err := r.eachPlace(ctx, f.running.seed, func(in *place) {
		seen[in.ref.LongName()], present[in.key()] = true, true
		r.countIn(f.running, in)
	})
	if err != nil {
		return failed(err)
	}
	for name := range f.running.clusters {
		if !seen[name] {
			f.running.drop(name)
		}
	}
	f.running.counted = true
	had := len(r.present) > 0
	r.present = present
	r.wakeEmpty(had)
	r.wakeWorking(f.running)
	return nil
}

// wakeWorking wakes the clusters of a set that need writes, or whose state depends on time. The caller holds the
// mutex.
func (r *Reconciler) wakeWorking(of *running) {
	for _, name := range slices.Sorted(maps.Keys(of.clusters)) {
		if one := of.clusters[name]; one.hasWork() && of.writes() || !one.Next.IsZero() {
			r.wakeCluster(one.key)
		}
	}
}

// concerns reports whether a cluster is counted: it has a namespace, is not being deleted, and belongs to this
// worker.
func (r *Reconciler) concerns(found target.Description) bool {
	return found.Namespace != "" && !found.Deleted && cluster.BelongsTo(found, r.Options.WorkerName)
}

// allOf selects a cluster's installations among all: those of a KKP Cluster may name it or not.
func allOf(of target.Ref, installations map[cluster.Key]byName) byName {
	found := installations[cluster.KeyOf(of)]
	for _, by := range cluster.KeysOf(of)[1:] {
		switch named := installations[by]; {
		case len(named) == 0:
		case found == nil:
			found = named
		default:
			found = maps.Clone(found) // the maps are shared
			maps.Copy(found, named)
		}
	}
	return found
}

// placeOf describes a cluster, with written installations merged into those of the cache. The caller holds the mutex.
func (r *Reconciler) placeOf(found *target.Description, live byName, seed string) (*place, error) {
	isOpen, err := r.caches.isOpen(found.Namespace)
	if err != nil {
		return nil, err
	}
	in := &place{
		name: found.Name, ref: found.Ref, elsewhere: r.caches.elsewhere(found.Ref), found: found,
		labels: cluster.Labels(*found, seed), version: found.KubernetesVersion,
		next: found.Next(), ahead: found.Ahead(), waits: found.Waits(),
		live: live.with(r.written, cluster.KeyOf(found.Ref)), asked: askedBy(found.Annotations),
		deviations: addonset.ReadDeviations(found.Annotations[v1.AnnotationDeviations]),
	}
	if object, isObject := found.Object.(client.Object); isObject {
		in.created = object.GetCreationTimestamp().Time
	}
	switch {
	case !isOpen: // until an event of the namespace
		in.away = v1.ReasonNamespaceTerminating
	case found.Paused:
		in.away = v1.ReasonPaused
	case found.KubernetesVersion == "" || !found.APIServerUp:
		in.away = v1.ReasonClusterNotReady
	}
	return in, nil
}

// askedBy reads annotation initial-installations. An unreadable one requests nothing: the addon controller refuses
// it.
func askedBy(annotations map[string]string) []asked {
	value := annotations[v1.AnnotationInitialInstallations]
	if value == "" {
		return nil
	}
	var raw []json.RawMessage
	if json.Unmarshal([]byte(value), &raw) != nil {
		return nil
	}
	var found []asked
	for _, one := range raw {
		var entry struct {
			Name            string            `json:"name"`
			AddonRef        v1.AddonReference `json:"addonRef"`
			TargetNamespace string            `json:"targetNamespace"`
		}
		if json.Unmarshal(one, &entry) == nil {
			found = append(found, asked{entry.Name, string(entry.AddonRef.Name), entry.TargetNamespace})
		}
	}
	return found
}

// countIn determines the state of a cluster in a set, and counts it. The caller holds the mutex.
func (r *Reconciler) countIn(of *running, in *place) (planned plan, counted rollout.ClusterStatus) {
	planned = planner{of.resolver, r.competitors}.planFor(in)
	of.isHeld = of.isHeld || planned.isHeld
	key, name := in.key(), in.ref.LongName()
	one := of.clusters[name]
	if !planned.counts() {
		if one == nil || !one.IsWriting() { // the end of a write is counted
			of.drop(name)
		}
		return planned, counted
	}
	if one == nil {
		one = &known{}
		of.clusters[name] = one
	}
	if of.names[key] != name {
		of.forgetName(name, one.key)
		one.key, of.names[key] = key, name
	}
	now := r.Clock.Now()
	about := planned.factsOf(in, of.removal)
	about.LeftOut, about.Deviates = of.leaveOut.Has(name), text.First(planned.deviations, deviationsNamed)
	found := waves.ClusterStatusOf(about, waves.Course{
		Strategy: of.moves(), StartedAt: of.startedAt, Now: now, Waiting: of.guard.Waiting,
		Halted: waves.IsHalted(&of.shown.status, of.revision),
	})
	one.repairs = planned.repairs()
	one.SetStatus(found, r.written.UnknownSince(key), now)
	if !one.IsGranted() {
		delete(of.granted, name)
	}
	of.guard.Note(name, waves.Holding{Installations: len(planned.mine), Keep: planned.keeps(of.set)}, found.Removals)
	of.tally.Put(name, one.ClusterStatus.ClusterStatus)
	return planned, one.ClusterStatus.ClusterStatus
}

// writes reports whether the set may write: a paused one writes only for its deletion.
func (r *running) writes() bool { return !r.paused || r.deleting }

// drop removes a cluster from the count: it is deleted, or the set neither has an installation there nor should have
// one.
func (r *running) drop(name string) {
	if one := r.clusters[name]; one != nil {
		r.forgetName(name, one.key)
	}
	delete(r.clusters, name)
	delete(r.granted, name)
	r.guard.Note(name, waves.Holding{}, nil)
	r.tally.Drop(name)
}

// forgetName drops the name of a key that belonged to this cluster: KKP's namespaces may belong to another by now.
func (r *running) forgetName(name string, key cluster.Key) {
	if r.names[key] == name {
		delete(r.names, key)
	}
}

// hasWork reports whether a cluster needs writes.
func (k *known) hasWork() bool { return k.IsGranted() || k.repairs }

// countCluster determines the state of a cluster in every set, and the writes that it needs.
func (r *Reconciler) countCluster(ctx context.Context, f *clusterFacts) *loop.Outcome {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	in, err := r.look(ctx, f.asked)
	if err != nil {
		return failed(err)
	}
	r.notePresent(f.asked, in)
	for _, name := range slices.Sorted(maps.Keys(r.sets)) {
		of := r.sets[name]
		if !of.counted {
			continue
		}
		if in == nil {
			r.leave(of, cluster.KeyOf(f.asked))
			continue
		}
		planned := r.countAgain(f, of, in)
		one := of.clusters[in.ref.LongName()]
		if one == nil {
			continue
		}
		f.next = waves.Sooner(f.next, one.Next)
		if f.problem == nil && one.hasWork() && of.writes() && r.started && !one.IsWriting() {
			if made := r.taskFor(of, in, one, &planned); len(made.steps) > 0 {
				f.tasks = append(f.tasks, made)
			}
		}
	}
	return nil
}

// notePresent notes whether a cluster exists. The caller holds the mutex.
func (r *Reconciler) notePresent(asked target.Ref, in *place) {
	had := len(r.present) > 0
	if in == nil {
		delete(r.present, cluster.KeyOf(asked))
	} else if r.present != nil {
		r.present[in.key()] = true
	}
	r.wakeEmpty(had)
}

// wakeEmpty wakes sets that select no cluster when the last cluster was deleted, or the first one created. The caller
// holds the mutex.
func (r *Reconciler) wakeEmpty(had bool) {
	for name, of := range r.sets {
		if had != (len(r.present) > 0) && of.tally.Counts().Selected == 0 {
			r.wakeSet(name)
		}
	}
}

// countAgain determines the state of a cluster in a set, and wakes the set if the state changed. If the API server
// could not be asked, the due write counts as refused.
func (r *Reconciler) countAgain(f *clusterFacts, of *running, in *place) plan {
	var before rollout.ClusterStatus
	name := in.ref.LongName()
	if one := of.clusters[name]; one != nil {
		before = one.ClusterStatus.ClusterStatus
		if f.unasked != "" && of.writes() && one.IsPending() {
			one.Refuse(f.unasked, f.problem, r.Clock.Now())
		}
	}
	planned, found := r.countIn(of, in)
	if one := of.clusters[name]; one != nil && one.Recall(of.decision.Open) {
		planned, found = r.countIn(of, in)
	}
	if !reflect.DeepEqual(before, found) {
		r.wakeSet(of.name)
	}
	return planned
}

// look describes a cluster; nil if there is none to count, or more than one.
func (r *Reconciler) look(ctx context.Context, asked target.Ref) (*place, error) {
	found, err := r.Finder.Find(ctx, asked)
	if isUnknown(err) || err == nil && (!r.concerns(found) || !cluster.IsAskedFor(asked, found)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	live, err := r.caches.in(found.Ref)
	if err != nil {
		return nil, err
	}
	return r.placeOf(&found, live, r.seed())
}

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// seed is the name of this seed, from the copies. The caller holds the mutex.
func (r *Reconciler) seed() string {
	for _, one := range r.sets {
		if one.set.seed != "" {
			return one.set.seed
		}
	}
	return ""
}

// leave stops counting a cluster that is deleted or unknown: nothing in it changes.
func (r *Reconciler) leave(of *running, key cluster.Key) {
	if name, isCounted := of.names[key]; isCounted {
		of.drop(name)
		r.wakeSet(of.name)
	}
}

// confirm asks the API server about installations that were written a while ago and that the cache does not have, and
// about writes that failed without an answer. While it can't be asked, nothing is written, but the state of the
// cluster is still reported.
func (r *Reconciler) confirm(ctx context.Context, f *clusterFacts) *loop.Outcome {
	unconfirmed, waits, err := r.unconfirmed(f.asked)
	if err != nil {
		return failed(err)
	}
	for _, name := range unconfirmed {
		key := client.ObjectKey{Namespace: f.asked.Namespace, Name: name}
		found, err := waves.Ask(ctx, r.Client, r.Reader, key)
		if err != nil {
			f.problem, f.unasked = err, name
			return nil
		}
		r.mutex.Lock()
		r.written.Settle(cluster.KeyOf(f.asked), name, found, r.Clock.Now())
		r.mutex.Unlock()
	}
	if waits {
		f.next = r.Clock.Now().Add(waves.UnseenFor)
	}
	return nil
}

// unconfirmed are the names in a cluster that the API server must be asked about, and whether the cache lacks a
// write.
func (r *Reconciler) unconfirmed(of target.Ref) (names []string, waits bool, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	key := cluster.KeyOf(of)
	if len(r.written[key]) == 0 {
		return nil, false, nil
	}
	cached, err := r.caches.in(of)
	if err != nil {
		return nil, false, err
	}
	listed := make(map[string]bool, len(cached))
	for name := range cached {
		listed[name] = true
	}
	return r.written.Unseen(key, listed, r.Clock.Now()), true, nil
}

// rest is the outcome with the time of the next reconciliation.
func (r *Reconciler) rest(next time.Time) *loop.Outcome {
	if next.IsZero() {
		return &loop.Outcome{Kind: loop.Done}
	}
	return &loop.Outcome{Kind: loop.Done, Recheck: max(next.Sub(r.Clock.Now()), time.Millisecond)}
}
