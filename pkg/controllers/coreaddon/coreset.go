package coreaddon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

// coreCopy is the Core set of a seed, according to the copies there.
type coreCopy struct {
	// set is the one in force; nil if there is none.
	set *v1.AddonSet
	// held says that a client edited a set's copy: nothing is written until it is restored.
	held bool
	// others are copies of type Core that are not in force, ending those of them whose deletion was confirmed.
	others, ending []*v1.AddonSet
	// seed is the name of this seed, according to copies of any type; empty if there is no copy.
	seed string
}

// isNone says that no set controls core add-ons.
func (c coreCopy) isNone() bool { return c.set == nil && !c.held }

// coreSet finds the Core set among the copies: by priority, then by the age of the original sets. A copy without the
// distributor's mark is ignored, unless its status shows that it was in force: then a client edited it, and the core
// add-ons that it controls stay as they are.
func (r *Reconciler) coreSet(ctx context.Context) (coreCopy, error) {
	return r.coreSetOf(ctx, r.Client)
}

func (r *Reconciler) coreSetOf(ctx context.Context, reader client.Reader) (coreCopy, error) {
	var list v1.AddonSetList
	if err := reader.List(ctx, &list, client.InNamespace(r.Options.CatalogueNamespace), client.UnsafeDisableDeepCopy); err != nil {
		return coreCopy{}, fmt.Errorf("listing AddonSets: %w", err)
	}
	var found coreCopy
	var believed []*v1.AddonSet
	for i := range list.Items {
		one := &list.Items[i]
		isMarked, isOurs := r.Marks.BelievesSet(one), slices.Contains(one.Finalizers, v1.FinalizerCleanupSet)
		if isMarked {
			found.seed = cmp.Or(found.seed, one.Annotations[v1.AnnotationSeed])
		}
		switch {
		case one.Spec.Type != v1.AddonSetCore:
		case !isMarked:
			found.held = found.held || isOurs && one.Labels[v1.LabelRole] == v1.RoleCopy && one.Status.Revision != ""
		case !one.DeletionTimestamp.IsZero() && one.Annotations[v1.AnnotationConfirmDeletion] == one.Name:
			found.ending = append(found.ending, one)
		case one.DeletionTimestamp.IsZero() || isOurs:
			believed = append(believed, one)
		}
	}
	slices.SortFunc(believed, addonset.Compare)
	if len(believed) > 0 {
		found.set, found.others = believed[0], believed[1:]
	}
	return found, nil
}

// reconcileSet reconciles the Core set: its content, the state of its clusters, and which of them may move.
func (r *Reconciler) reconcileSet(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	outcome := r.setFailures.BackOff(request.Name, loop.Run(ctx, r.setSteps(), &setFacts{}))
	if outcome.Is(loop.RetryAt) {
		log.FromContext(ctx).Info("reconciling the Core set failed", "problem", outcome.Message, "after", outcome.Recheck.String())
	}
	return loop.Result(outcome), nil
}

// setFacts are the findings of one reconciliation of the Core set.
type setFacts struct {
	coreCopy
	offers *offers
	// catalogues is the digest of all merged catalogues.
	catalogues string
	run        *running
	// gateProblem is the reason why annotation gate can't be read, invalid why the copy can't; in both cases the last
	// valid content stays in force. Both are usually nil.
	gateProblem, invalid error
}

// setSteps are the steps of a reconciliation of the Core set, in order.
func (r *Reconciler) setSteps() []loop.Step[setFacts] {
	return []loop.Step[setFacts]{
		{Name: "read", Run: r.readSet},      // the copy in force; without one, clusters are reconciled as usual
		{Name: "offers", Run: r.readOffers}, // the list, the entries of all core add-ons
		{Name: "revise", Run: r.revise},     // the revision, which is written into the status before anything moves
		{Name: "count", Run: r.count},       // all clusters, or those that were reconciled
		{Name: "decide", Run: r.decide},     // which clusters may move now
		{Name: "status", Run: r.showSet},    // status and events
	}
}

// readSet ends the reconciliation if there is no Core set: then all clusters are reconciled as usual, which removes
// their pins.
func (r *Reconciler) readSet(ctx context.Context, f *setFacts) *loop.Outcome {
	var err error
	if f.coreCopy, err = r.coreSet(ctx); err != nil {
		return failed(err)
	}
	for _, one := range f.ending {
		if err := loop.Start(r.Client, one.DeepCopy()).SetFinalizer(ctx, v1.FinalizerCleanupSet, false); err != nil {
			return failed(err)
		}
	}
	for _, one := range f.others {
		if err := r.refuseSet(ctx, one, fmt.Sprintf("AddonSet %q of type Core is in use, by priority or age", f.set.Name)); err != nil {
			return failed(err)
		}
	}
	if f.set == nil {
		if !f.held {
			r.endSet(ctx, f.seed)
		}
		return &loop.Outcome{Kind: loop.Done}
	}
	f.set = f.set.DeepCopy()
	if f.set.DeletionTimestamp.IsZero() {
		if err := loop.Start(r.Client, f.set).SetFinalizer(ctx, v1.FinalizerCleanupSet, true); err != nil {
			return failed(err)
		}
	}
	r.take(f)
	return nil
}

// take reads the set into memory. Nothing is used of a spec that can't be read: the last valid one stays in force. A
// process that has read no valid spec changes nothing in any cluster.
func (r *Reconciler) take(f *setFacts) {
	s := &r.staging
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.run == nil || s.run.uid != f.set.UID {
		s.run = begin(f.set, r.Options.StatusInterval)
	}
	f.run = s.run
	leaveOut, _ := rollout.ReadLeaveOut(f.set.Annotations[v1.AnnotationLeaveOut]) // the master reports an annotation that can't be read
	if !slices.Equal(f.run.leaveOut, leaveOut) {
		f.run.leaveOut, f.run.counted = leaveOut, false
	}
	if f.run.generation == f.set.Generation && f.run.seed == f.set.Annotations[v1.AnnotationSeed] {
		f.invalid = f.run.invalid
		return
	}
	f.run.generation, f.run.seed, f.run.counted = f.set.Generation, f.set.Annotations[v1.AnnotationSeed], false
	strategy, err := rollout.NewStrategy(f.set.Spec.Rollout)
	f.invalid, f.run.invalid = err, err
	if err != nil {
		f.run.paused = f.run.paused || f.set.Spec.Paused
		return
	}
	f.run.spec, f.run.paused = *f.set.Spec.DeepCopy(), f.set.Spec.Paused
	f.run.strategy, f.run.isStaged = strategy, f.set.Spec.Rollout != nil
	f.run.decision = rollout.Decision{Open: rollout.NoGroup} // the groups have changed
}

// begin starts to carry a copy out, with the state that an earlier process left in its status. The set is paused
// until its spec was read.
func begin(of *v1.AddonSet, statusInterval time.Duration) *running {
	made := &running{
		uid: of.UID, generation: -1, paused: true, tally: rollout.NewTally(of.Name),
		clusters: map[cluster.Key]*known{}, keys: map[string]cluster.Key{}, granted: map[cluster.Key]bool{},
		revision: of.Status.Revision, shown: *of.Status.DeepCopy(), writes: backoff.NewWrites(statusInterval),
	}
	made.strategy, _ = rollout.NewStrategy(nil) // an absent rollout is valid
	if at := of.Status.StartedAt; at != nil {
		made.startedAt = at.Time
	}
	return made
}

// endSet makes the clusters of a deleted set be reconciled as usual, also those that wait for the name of the seed.
func (r *Reconciler) endSet(ctx context.Context, seed string) {
	r.staging.mutex.Lock()
	was := r.staging.run != nil || r.staging.seed != seed
	r.staging.run, r.staging.seed = nil, seed
	if was {
		clear(r.staging.written)
		clear(r.staging.touched)
	}
	queue := r.staging.clusters
	r.staging.mutex.Unlock()
	if was && queue != nil {
		for _, request := range r.allClusters(ctx, nil) {
			queue.Add(request)
		}
	}
}

// refuseSet writes into a copy's status that the copy is not rolled out, and the reason.
func (r *Reconciler) refuseSet(ctx context.Context, of *v1.AddonSet, why string) error {
	wanted, isNew := waves.Refused(of, why)
	if !isNew {
		return nil
	}
	return waves.WriteStatus(ctx, r.Client, fieldOwner, of, wanted)
}

// readOffers reads the list, and all catalogues of core add-ons.
func (r *Reconciler) readOffers(ctx context.Context, f *setFacts) *loop.Outcome {
	state, err := r.readCoreList(ctx)
	if err != nil {
		return failed(err)
	}
	var merged v1.AddonCatalogueList
	if err := r.Client.List(ctx, &merged, client.InNamespace(r.Options.CatalogueNamespace), client.UnsafeDisableDeepCopy); err != nil {
		return failed(fmt.Errorf("listing merged AddonCatalogues: %w", err))
	}
	digests := map[string]string{}
	for i := range merged.Items {
		if r.Marks.Believes(&merged.Items[i]) {
			digests[merged.Items[i].Name] = merged.Items[i].Annotations[v1.AnnotationDigest]
		}
	}
	f.catalogues = catalogue.DependencyDigest(digests)
	f.offers = &offers{list: state, entries: map[string]*catalogue.Entry{}, preReleases: r.Options.AllowPrereleases}
	names := map[string]bool{}
	for _, one := range rules() {
		names[one.addon] = true
	}
	for _, one := range state.Items {
		names[string(one.spec.AddonRef.Name)] = true
	}
	var entries []*catalogue.Entry
	for name := range names {
		entry, err := r.Marks.Entry(ctx, r.Client, client.ObjectKey{Namespace: r.Options.CatalogueNamespace, Name: name})
		if err != nil {
			return failed(fmt.Errorf("reading merged AddonCatalogue %q: %w", name, err))
		}
		f.offers.entries[name] = entry
		if entry != nil {
			entries = append(entries, entry)
		}
	}
	f.offers.kkp = catalogue.StampedKKPVersion(entries)
	return nil
}
