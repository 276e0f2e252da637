package coreaddon

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
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
	// touched are namespaces that had a pass since their cluster was counted.
	touched        map[string]bool
	sets, clusters workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// running is a Core set that is carried out.
type running struct {
	uid        types.UID
	generation int64
	paused     bool
	seed       string
	strategy   rollout.Strategy
	offers     *offers
	// basis is what the revision was taken from; nil before.
	basis *basis
	// revision and startedAt are in the status of the copy.
	revision  string
	startedAt time.Time
	// counted says that every cluster was counted, with these offers and this revision.
	counted bool
	tally   *rollout.Tally
	// clusters by namespace are those in the tally.
	clusters map[string]*staged
	decision rollout.Decision
	// shown is the status that was written last.
	shown   v1.AddonSetStatus
	shownAt time.Time
}

// staged is what is kept of one cluster.
type staged struct {
	name     string
	standing waves.Standing
	// granted says that it may be moved, and holds a place.
	granted bool
	// holds says that something is to be written that changes nothing in the user cluster.
	holds bool
}

// under is what a pass over a cluster knows of the Core set.
type under struct {
	offers   *offers
	strategy rollout.Strategy
	// mayMove says that the cluster is written as the set has it now.
	mayMove bool
	pace    installation.Pace
	at      time.Time
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
func (s *staging) wake(namespace string) {
	if s.clusters != nil {
		s.clusters.Add(cluster.Request(target.Ref{Namespace: namespace}))
	}
}

// isActive says whether there is a Core set.
func (s *staging) isActive() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.run != nil
}

// touch has a cluster counted again after a pass over it.
func (s *staging) touch(namespace string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.run == nil {
		return
	}
	s.touched[namespace] = true
	s.wakeSet()
}

// over puts what was written in a namespace over what the cache has.
func (s *staging) over(namespace string, cached []v1.AddonInstallation) []v1.AddonInstallation {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.written[namespace]) == 0 {
		return cached
	}
	live := make(map[string]*v1.AddonInstallation, len(cached))
	for i := range cached {
		live[cached[i].Name] = &cached[i]
	}
	s.written.Over(namespace, live)
	merged := make([]v1.AddonInstallation, 0, len(live))
	for _, one := range live {
		merged = append(merged, *one)
	}
	return merged
}

// underFor a cluster pass; nil where the set is not counted yet, so that nothing is to be written.
func (s *staging) underFor(of coreCopy, namespace string, now time.Time) *under {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	run := s.run
	if run == nil || !run.counted || of.set == nil || run.uid != of.set.UID || run.generation != of.set.Generation {
		return nil
	}
	found := &under{offers: run.offers, strategy: run.strategy, at: now}
	one := run.clusters[namespace]
	if one == nil { // it is counted first
		return nil
	}
	found.mayMove = !run.paused && (one.granted || one.standing.AtOnce)
	group := run.strategy.Groups[max(one.standing.Group, 0)]
	found.pace = installation.Pace{Soak: group.Soak, Deadline: group.ProgressDeadline}
	return found
}

// moved says that the writes of a cluster's move are through.
func (s *staging) moved(namespace string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.run != nil && s.run.clusters[namespace] != nil {
		s.run.clusters[namespace].granted = false
	}
}

// planStage puts what is for now in the place of the ordinary plan: until its move, what the cluster
// has is the set.
func (r *Reconciler) planStage(f *facts) {
	made := stageFor(f.under.offers, f.cluster.KubernetesVersion, f.set, f.installations)
	if !f.under.mayMove {
		f.plan = made.hold
		return
	}
	writes := made.move
	for _, one := range made.hold.apply { // what stays gets no new time
		i := slices.IndexFunc(writes.apply, func(c change) bool { return c.wanted.name == one.wanted.name })
		switch {
		case i < 0:
			writes.apply = append(writes.apply, one)
		case writes.apply[i].wanted.spec.AddonRef == one.wanted.spec.AddonRef:
			writes.apply[i].stays = true
		}
	}
	f.plan = writes
}

// noteWritten keeps what the API server answered, until the cache has it.
func (r *Reconciler) noteWritten(f *facts, answer *v1.AddonInstallation, removed bool) {
	if f.under == nil {
		return
	}
	r.staging.mutex.Lock()
	defer r.staging.mutex.Unlock()
	r.staging.written.Put(answer, removed, r.Clock.Now())
}
