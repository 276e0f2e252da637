package coreaddon

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

// staging is the memory about the Core set and its clusters. Under its mutex only caches are called.
type staging struct {
	mutex sync.Mutex
	// run is the set that is carried out; nil if there is none.
	run     *running
	written waves.Written
	// touched are clusters that were reconciled since they were counted.
	touched map[cluster.Key]bool
	// seed is the name of the seed at the last reconciliation of clusters without a set.
	seed           string
	sets, clusters workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// running is a Core set that is carried out.
type running struct {
	uid types.UID
	// generation is that of the copy that was read last; spec is the last valid one.
	generation int64
	spec       v1.AddonSetSpec
	// invalid is why the spec of that generation can't be read; usually nil.
	invalid error
	paused  bool
	// leaveOut are the clusters that annotation leave-out names.
	leaveOut rollout.LeaveOut
	settings
	// basis is the content that the revision was taken from; nil before. seen are the offers of the last comparison: an
	// edit of a catalogue may have no effect.
	basis *basis
	seen  *offers
	// revision is the one in the status of the copy; startedAt of settings is its start.
	revision string
	// counted says that every cluster was counted with these offers and this revision.
	counted bool
	tally   *rollout.Tally
	// clusters are those in the tally, keys their keys by the name that they have there.
	clusters map[cluster.Key]*known
	keys     map[string]cluster.Key
	// granted are clusters that were granted places: a halt checks no others.
	granted map[cluster.Key]bool
	// guard says which removals wait: an add-on that rules, list or catalogues drop is removed with its cluster's
	// move.
	guard    waves.Guard
	decision rollout.Decision
	// shown is the last written status, and writes says when the next write is allowed.
	shown  v1.AddonSetStatus
	writes backoff.Writes
}

// known is the memory about one cluster.
type known struct {
	// name is unique among all clusters of the seed.
	name string
	waves.Move
	// repairs says that a write is due which does not affect the user cluster.
	repairs bool
	// closed says that its namespace is being deleted or does not exist: nothing is written there.
	closed bool
	// waits says that a reconciliation ran before an immediate write was counted, and changed nothing.
	waits bool
}

// settings are a set's settings for all clusters.
type settings struct {
	offers   *offers
	strategy rollout.Strategy
	// isStaged says that the set has a rollout.
	isStaged bool
	// seed is this seed's name.
	seed string
	// startedAt is when the revision began.
	startedAt time.Time
}

// groupOf is the group of a cluster.
func (s *settings) groupOf(found target.Description) rollout.Group {
	return s.strategy.Groups[s.strategy.GroupOf(cluster.Labels(found, s.seed))]
}

// placeOf is a cluster with its set and its installations.
func (s *settings) placeOf(found target.Description, wants set, installations []v1.AddonInstallation) place {
	made := place{
		ref: found.Ref, k8s: found.KubernetesVersion, next: found.Next(), waits: found.Waits(), set: wants, installations: installations,
		startedAt: s.startedAt, grace: s.groupOf(found).ProgressDeadline, isStaged: s.isStaged,
	}
	if object, isObject := found.Object.(client.Object); isObject {
		made.created = object.GetCreationTimestamp().Time
	}
	return made
}

// inForce is the part of the Core set that a cluster's reconciliation uses.
type inForce struct {
	settings
	// mayMove says that the cluster is written as the set is now, mayMake that missing installations are created.
	mayMove, mayMake bool
	mayRemove        func(*v1.AddonInstallation) bool
	pace             installation.Pace
	at               time.Time
}

// requestOfSet is the one request of the queue of sets.
var requestOfSet = reconcile.Request{NamespacedName: types.NamespacedName{Name: "core"}}

// wakeSet enqueues the set. The caller holds the mutex.
func (s *staging) wakeSet() {
	if s.sets != nil {
		s.sets.Add(requestOfSet)
	}
}

// wake enqueues a cluster. The caller holds the mutex.
func (s *staging) wake(of cluster.Key) {
	if s.clusters != nil {
		s.clusters.Add(reconcile.Request{NamespacedName: of})
	}
}

// wakeAfter enqueues a cluster for when the time alone may have changed it. The caller holds the mutex.
func (s *staging) wakeAfter(of cluster.Key, rest time.Duration) {
	if s.clusters != nil {
		s.clusters.AddAfter(reconcile.Request{NamespacedName: of}, rest)
	}
}

// close stores whether a cluster's namespace is closed to writes.
func (s *staging) close(of cluster.Key, closed bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.run != nil && s.run.clusters[of] != nil {
		s.run.clusters[of].closed = closed
	}
}

// isActive reports whether there is a Core set.
func (s *staging) isActive() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.run != nil
}

// touch makes a cluster be counted again after its reconciliation.
func (s *staging) touch(of cluster.Key, refused *refusedWrite, now time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.run == nil {
		return
	}
	if one := s.run.clusters[of]; one != nil {
		counts := refused != nil && (one.IsWriting() || refused.isUnasked && !s.run.paused && one.IsPending())
		one.End()
		if counts {
			one.Refuse(refused.name, refused.err, now)
		}
	}
	s.touched[of] = true
	s.wakeSet()
}

// over merges the written installations of a cluster into those of the cache.
func (s *staging) over(of cluster.Key, cached []v1.AddonInstallation) []v1.AddonInstallation {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.overlaid(of, cached)
}

// overlaid is over for a caller that holds the mutex. For a deleted installation, the cache may still show the
// protection, which was removed first.
func (s *staging) overlaid(of cluster.Key, cached []v1.AddonInstallation) []v1.AddonInstallation {
	if len(s.written[of]) == 0 {
		return cached
	}
	live := make(map[string]*v1.AddonInstallation, len(cached))
	for i := range cached {
		live[cached[i].Name] = &cached[i]
	}
	s.written.Over(of, live)
	merged := make([]v1.AddonInstallation, 0, len(live))
	for _, one := range live {
		merged = append(merged, *one)
	}
	for i := range cached {
		now := live[cached[i].Name]
		if cached[i].DeletionTimestamp.IsZero() && !now.DeletionTimestamp.IsZero() {
			at := slices.IndexFunc(merged, func(one v1.AddonInstallation) bool { return one.Name == now.Name })
			merged[at].Finalizers = slices.DeleteFunc(slices.Clone(now.Finalizers), func(one string) bool {
				return one == v1.FinalizerCoreProtection
			})
		}
	}
	return merged
}

// unseen are names in a cluster that were written a while ago and that the cache does not have. While one is missing,
// the cluster is reconciled again.
func (s *staging) unseen(of cluster.Key, cached []v1.AddonInstallation, now time.Time) []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.written[of]) == 0 {
		return nil
	}
	listed := make(map[string]bool, len(cached))
	for i := range cached {
		listed[cached[i].Name] = true
	}
	s.wakeAfter(of, waves.UnseenFor)
	return s.written.Unseen(of, listed, now)
}

// settle stores the API server's answer about an installation that was written.
func (s *staging) settle(of cluster.Key, name string, found waves.Answer, now time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.written.Settle(of, name, found, now)
}

// inForceFor returns the set for a cluster's reconciliation; nil if the set is not counted yet, so that nothing may
// be written. A cluster that may move counts as being written from here.
func (s *staging) inForceFor(of coreCopy, in cluster.Key, now time.Time) *inForce {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	run := s.run
	if run == nil || !run.counted || of.set == nil || run.uid != of.set.UID || run.generation != of.set.Generation {
		return nil
	}
	one := run.clusters[in]
	if one == nil { // it must be counted first
		return nil
	}
	one.Recall(run.decision.Open) // the reconciliation ends in a count
	found := &inForce{
		settings: run.settings, at: now, mayRemove: run.guard.Allowed(),
		mayMove: !run.paused && one.IsGranted(),
		mayMake: run.paused && one.AtOnce && one.State == v1.ClusterNew,
	}
	if found.mayMove {
		one.Begin()
	}
	one.waits = one.waits || one.AtOnce && !one.IsGranted()
	return found
}

// moved says that all writes of a cluster's move are made.
func (s *staging) moved(of cluster.Key) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.run != nil && s.run.clusters[of] != nil {
		s.run.clusters[of].Done()
	}
}

// planStage replaces the ordinary plan with the present stage: until its move, the cluster's installations are the
// set.
func (r *Reconciler) planStage(f *facts) {
	group := f.inForce.groupOf(f.cluster)
	f.inForce.pace = installation.Pace{Soak: group.Soak, Deadline: group.ProgressDeadline}
	made := stageFor(f.inForce.offers, f.inForce.placeOf(f.cluster, f.set, f.installations))
	switch {
	case f.inForce.mayMove:
		f.plan = made.moving(f.inForce.mayRemove)
	case f.inForce.mayMake:
		f.plan = made.making()
	default:
		f.plan = made.hold
	}
}

// noteWritten stores the API server's answer until the cache has it.
func (r *Reconciler) noteWritten(f *facts, answer *v1.AddonInstallation, removed bool) {
	r.staging.mutex.Lock()
	defer r.staging.mutex.Unlock()
	r.staging.written.Put(f.key(), answer, removed, r.Clock.Now())
	if run := r.staging.run; f.inForce != nil && f.inForce.mayMove && run != nil && run.clusters[f.key()] != nil {
		run.clusters[f.key()].Wrote()
	}
}

// noteRefused stores a failed write, with any error.
func (r *Reconciler) noteRefused(f *facts, name string, err error) {
	f.refused = &refusedWrite{name: name, err: err}
}

// noteAnswer stores that a failed call had no answer: the API server is asked before the next write.
func (r *Reconciler) noteAnswer(f *facts, name string, err error) {
	if f.inForce == nil || !waves.IsUnanswered(err) {
		return
	}
	r.staging.mutex.Lock()
	defer r.staging.mutex.Unlock()
	r.staging.written.MarkUnknown(f.key(), name, r.Clock.Now())
}
