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
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/installation"
	"github.com/trellis-addons/trellis/pkg/rollout"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/waves"
)

// staging is what is known of the Core set and its clusters. Nothing is called under its mutex but
// caches.
type staging struct {
	mutex sync.Mutex
	// run is the set that is carried out; nil: none.
	run     *running
	written waves.Written
	// touched are clusters that had a pass since they were counted.
	touched map[cluster.Key]bool
	// seed is the name of the seed, as clusters without a set were last looked at.
	seed           string
	sets, clusters workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// running is a Core set that is carried out.
type running struct {
	uid types.UID
	// generation of the copy that was looked at last; spec is the last one that could be read.
	generation int64
	spec       v1.AddonSetSpec
	// invalid is why the spec of that generation can't be read; nil as a rule.
	invalid error
	paused  bool
	// leaveOut are the clusters that annotation leave-out names.
	leaveOut rollout.LeaveOut
	settings
	// basis is what the revision was taken from; nil before. seen are the offers that it was
	// compared with last: an edit of a catalogue may change nothing.
	basis *basis
	seen  *offers
	// revision is in the status of the copy, and when it began.
	revision string
	// counted says that every cluster was counted, with these offers and this revision.
	counted bool
	tally   *rollout.Tally
	// clusters are those in the tally, and keys theirs by the name that they have there.
	clusters map[cluster.Key]*known
	keys     map[string]cluster.Key
	// granted are clusters that were granted places: a halt looks at no others.
	granted map[cluster.Key]bool
	// guard says which removals wait: what is out of rules, list or catalogues goes with its
	// cluster's move.
	guard    waves.Guard
	decision rollout.Decision
	// shown is the status that was written last, and writes say when the next one may be written.
	shown  v1.AddonSetStatus
	writes backoff.Writes
}

// known is what is kept of one cluster.
type known struct {
	// name among all clusters of the seed.
	name string
	waves.Move
	// repairs says that something is to be written that changes nothing in the user cluster.
	repairs bool
	// closed says that its namespace is being deleted, or is gone: nothing is written there.
	closed bool
	// waits says that a pass came between a write at once and the count of it, and held all as it is.
	waits bool
}

// settings are what a set has for all clusters.
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

// groupOf a cluster.
func (s *settings) groupOf(found target.Description) rollout.Group {
	return s.strategy.Groups[s.strategy.GroupOf(cluster.Labels(found, s.seed))]
}

// placeOf a cluster, with what it is to have and what is there.
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

// inForce is what a pass over a cluster knows of the Core set.
type inForce struct {
	settings
	// mayMove says that the cluster is written as the set has it now, mayMake that it gets what is
	// not there.
	mayMove, mayMake bool
	mayRemove        func(*v1.AddonInstallation) bool
	pace             installation.Pace
	at               time.Time
}

// requestOfSet is the one request of the queue of sets.
var requestOfSet = reconcile.Request{NamespacedName: types.NamespacedName{Name: "core"}}

// wakeSet has the set look at its clusters. The mutex is held.
func (s *staging) wakeSet() {
	if s.sets != nil {
		s.sets.Add(requestOfSet)
	}
}

// wake a cluster. The mutex is held.
func (s *staging) wake(of cluster.Key) {
	if s.clusters != nil {
		s.clusters.Add(reconcile.Request{NamespacedName: of})
	}
}

// wakeAfter has a cluster looked at again when time alone may have changed it. The mutex is held.
func (s *staging) wakeAfter(of cluster.Key, rest time.Duration) {
	if s.clusters != nil {
		s.clusters.AddAfter(reconcile.Request{NamespacedName: of}, rest)
	}
}

// close says whether a cluster's namespace is one to write to.
func (s *staging) close(of cluster.Key, closed bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.run != nil && s.run.clusters[of] != nil {
		s.run.clusters[of].closed = closed
	}
}

// isActive says whether there is a Core set.
func (s *staging) isActive() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.run != nil
}

// touch has a cluster counted again after a pass over it, which wrote what it could.
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

// over puts what was written in a cluster over what the cache has.
func (s *staging) over(of cluster.Key, cached []v1.AddonInstallation) []v1.AddonInstallation {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.overlaid(of, cached)
}

// overlaid is over with the mutex held. Of what was deleted the cache may still have the
// protection, which went first.
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

// unseen are the names in a cluster that were written a while ago and that the cache does not
// have. While something is missing the cluster is looked at again.
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

// settle what the API server has of an installation that was written.
func (s *staging) settle(of cluster.Key, name string, found waves.Answer, now time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.written.Settle(of, name, found, now)
}

// inForceFor a cluster pass; nil where the set is not counted yet, so that nothing is to be
// written. A cluster that may move counts as being written from here.
func (s *staging) inForceFor(of coreCopy, in cluster.Key, now time.Time) *inForce {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	run := s.run
	if run == nil || !run.counted || of.set == nil || run.uid != of.set.UID || run.generation != of.set.Generation {
		return nil
	}
	one := run.clusters[in]
	if one == nil { // it is counted first
		return nil
	}
	one.Recall(run.decision.Open) // the pass ends in a count
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

// moved says that the writes of a cluster's move are through.
func (s *staging) moved(of cluster.Key) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.run != nil && s.run.clusters[of] != nil {
		s.run.clusters[of].Done()
	}
}

// planStage puts what is for now in the place of the ordinary plan: until its move, what the
// cluster has is the set.
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

// noteWritten keeps what the API server answered, until the cache has it.
func (r *Reconciler) noteWritten(f *facts, answer *v1.AddonInstallation, removed bool) {
	r.staging.mutex.Lock()
	defer r.staging.mutex.Unlock()
	r.staging.written.Put(f.key(), answer, removed, r.Clock.Now())
	if run := r.staging.run; f.inForce != nil && f.inForce.mayMove && run != nil && run.clusters[f.key()] != nil {
		run.clusters[f.key()].Wrote()
	}
}

// noteRefused keeps that a write failed, whatever it failed by.
func (r *Reconciler) noteRefused(f *facts, name string, err error) {
	f.refused = &refusedWrite{name: name, err: err}
}

// noteAnswer keeps what a call to the API server left that failed. Where it had no answer, the API
// server is asked before the next write.
func (r *Reconciler) noteAnswer(f *facts, name string, err error) {
	if f.inForce == nil || !waves.IsUnanswered(err) {
		return
	}
	r.staging.mutex.Lock()
	defer r.staging.mutex.Unlock()
	r.staging.written.Doubt(f.key(), name, r.Clock.Now())
}
