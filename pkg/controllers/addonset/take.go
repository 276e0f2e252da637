package addonset

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
	"github.com/trellis-addons/trellis/pkg/values"
)

// readCopy ends the reconciliation if there is no copy from the distributor: the set's installations stay as they
// are, since a missing copy proves nothing.
func (r *Reconciler) readCopy(ctx context.Context, f *setFacts) *loop.Outcome {
	found := &v1.AddonSet{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Options.CatalogueNamespace, Name: f.name}, found)
	if client.IgnoreNotFound(err) != nil {
		return failed(fmt.Errorf("getting AddonSet %q: %w", f.name, err))
	}
	if err != nil {
		r.forget(f.name)
		r.read(f.name)
		r.unseen(f.name)
		return r.startAfter(ctx, &loop.Outcome{Kind: loop.Done})
	}
	outcome := r.evaluate(ctx, f, found)
	r.sees(found) // last: its possible claims are known by now
	return r.startAfter(ctx, outcome)
}

// startAfter starts after a copy was read, with any outcome: sets that were decided before may wait for this copy
// alone, which may belong to another controller, be refused or deleted, or fail in a later step.
func (r *Reconciler) startAfter(ctx context.Context, outcome *loop.Outcome) *loop.Outcome {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if _, err := r.start(ctx); err != nil {
		return failed(err)
	}
	return outcome
}

// evaluate decides whether a copy is ours, another controller's, or can't be used.
func (r *Reconciler) evaluate(ctx context.Context, f *setFacts, found *v1.AddonSet) *loop.Outcome {
	switch believed := r.Marks.BelievesSet(found); {
	case found.Spec.Type == v1.AddonSetCore: // the core add-on controller's, also if a client edited it: it has no items
		r.forget(f.name)
		r.read(f.name)
		return &loop.Outcome{Kind: loop.NotMine}
	case !believed && isCopy(found):
		r.markUnknown(found)
		return &loop.Outcome{Kind: loop.Done}
	case !believed:
		r.forget(f.name)
		r.read(f.name)
		return &loop.Outcome{Kind: loop.Done}
	}
	f.copy = found
	if f.set = r.known(found); f.set != nil {
		return nil
	}
	read, err := readSet(found)
	if err != nil {
		return r.refuse(ctx, f, err)
	}
	read.deleting = read.deleting && found.Annotations[v1.AnnotationConfirmDeletion] == f.name // otherwise it stays in force
	f.set = read
	r.expect(read)
	return nil
}

// isCopy reports whether an object is, or was, a copy: a client may have removed its label.
func isCopy(found client.Object) bool {
	return found.GetLabels()[v1.LabelRole] == v1.RoleCopy || slices.Contains(found.GetFinalizers(), v1.FinalizerCleanupSet)
}

// known is the set that was read before from the same copy; nil if it must be read.
func (r *Reconciler) known(found *v1.AddonSet) *set {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	run := r.sets[found.Name]
	if run == nil || run.set == nil || !found.DeletionTimestamp.IsZero() || !run.isOf(found) {
		return nil
	}
	return run.set
}

// start starts once all copies were read, and wakes the sets that waited for that. Result false: some were not read.
// The caller holds the mutex.
func (r *Reconciler) start(ctx context.Context) (bool, error) {
	if r.started {
		return true, nil
	}
	var copies v1.AddonSetList
	if err := r.Client.List(ctx, &copies, client.InNamespace(r.Options.CatalogueNamespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing AddonSets: %w", err)
	}
	for i := range copies.Items {
		one := &copies.Items[i]
		if !r.passed[one.Name] && isCopy(one) {
			return false, nil
		}
	}
	r.started = true
	for name, one := range r.sets {
		r.wakeSet(name)
		r.wakeWorking(one)
	}
	return true, nil
}

// forget drops a set that does not exist, or is not ours.
func (r *Reconciler) forget(name string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.sets[name] == nil {
		return
	}
	names := r.sharing(r.sets[name].set)
	delete(r.sets, name)
	delete(r.platform, name)
	r.changeCompetitors()
	r.recount(names)
}

// changeCompetitors updates the rivals after a change among the sets. The caller holds the mutex.
func (r *Reconciler) changeCompetitors() {
	sets := make(map[string]*set, len(r.sets))
	for name, one := range r.sets {
		sets[name] = one.set
	}
	r.competitors = newCompetitors(sets)
	r.competitors.unknown = slices.SortedFunc(maps.Values(r.unusable), func(a, b *claims) int { return strings.Compare(a.set, b.set) })
}

// sharing are the other sets that have a name in common with a set. The caller holds the mutex.
func (r *Reconciler) sharing(with *set) []string {
	var names []string
	for name, other := range r.sets {
		if name == with.name {
			continue
		}
		for item := range with.byName {
			if other.byName[item] != nil {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

// recount makes sets count all clusters again. The caller holds the mutex.
func (r *Reconciler) recount(names []string) {
	for _, name := range names {
		if other := r.sets[name]; other != nil {
			other.counted = false
			r.wakeSet(name)
		}
	}
}

// catalogues reads the entries of the set's add-ons. A list that fails changes nothing.
func (r *Reconciler) catalogues(ctx context.Context, f *setFacts) *loop.Outcome {
	found, err := r.readDependencies(ctx, f.set)
	if err != nil {
		return failed(err)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	maps.Copy(r.entries, found.entries)
	maps.Copy(r.unknown, found.unknown)
	r.platform[f.name] = found.platform
	return nil
}

// dependenciesOf are the entries and values that a set depends on, as offers has them.
type dependenciesOf struct {
	entries  map[string]*catalogue.Entry
	unknown  map[string]string
	platform map[string]platformValues
}

func (r *Reconciler) readDependencies(ctx context.Context, of *set) (found dependenciesOf, err error) {
	found.entries = map[string]*catalogue.Entry{}
	for _, addon := range of.dependsOn {
		entry, err := r.Marks.Entry(ctx, r.Client, client.ObjectKey{Namespace: r.Options.CatalogueNamespace, Name: addon})
		if err != nil {
			return found, fmt.Errorf("reading merged AddonCatalogue %q: %w", addon, err)
		}
		found.entries[addon] = entry
	}
	if found.unknown, err = r.unknownAddons(ctx, found.entries); err != nil {
		return found, err
	}
	found.platform, err = r.readPlatformValues(ctx, of)
	return found, err
}

// unknownAddons returns a message for each add-on without an entry: no catalogue has it, and which one may be meant.
func (r *Reconciler) unknownAddons(ctx context.Context, entries map[string]*catalogue.Entry) (map[string]string, error) {
	found := map[string]string{}
	var known []string
	for addon, entry := range entries {
		if entry != nil {
			continue
		}
		if known == nil {
			var err error
			if known, err = r.Marks.Addons(ctx, r.Client, r.Options.CatalogueNamespace); err != nil {
				return nil, err
			}
		}
		found[addon] = values.UnknownAddon(addon, known)
	}
	return found, nil
}

// offersFor returns the catalogues' present offers for a set. The caller holds the mutex.
func (r *Reconciler) offersFor(of *set) *offers {
	return dependenciesOf{r.entries, r.unknown, r.platform[of.name]}.offersFor(of, r)
}

func (d dependenciesOf) offersFor(of *set, r *Reconciler) *offers {
	made := &offers{entries: map[string]*catalogue.Entry{}, unknown: map[string]string{}, preReleases: r.Options.AllowPrereleases}
	var all []*catalogue.Entry
	for _, addon := range of.dependsOn {
		entry := d.entries[addon]
		made.entries[addon] = entry
		if entry == nil {
			made.unknown[addon] = d.unknown[addon]
			continue
		}
		all = append(all, entry)
	}
	made.kkp = catalogue.StampedKKPVersion(all)
	made.platform, made.marks = d.platform, r.Marks
	return made
}

// take takes the set into memory. After a change of the set or its dependencies, all clusters are counted.
func (r *Reconciler) take(ctx context.Context, f *setFacts) *loop.Outcome {
	if f.copy.DeletionTimestamp.IsZero() {
		run := loop.Start(r.Client, f.copy)
		if err := run.SetFinalizer(ctx, v1.FinalizerCleanupSet, true); err != nil {
			return failed(err)
		}
	} else if !slices.Contains(f.copy.Finalizers, v1.FinalizerCleanupSet) {
		r.forget(f.name)
		r.read(f.name)
		return &loop.Outcome{Kind: loop.Done}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	f.running = r.sets[f.name]
	if f.running == nil || f.running.uid != f.set.uid {
		f.running = r.begin(f.copy)
	}
	if f.running.set == nil || !f.running.isSame(f.set) {
		r.replace(f)
	}
	now := r.offersFor(f.set)
	if f.running.resolver == nil || f.running.resolver.set != f.running.set || !f.running.offers.isSame(now) {
		f.running.resolver, f.running.counted = newResolver(f.running.set, now), false
	}
	return nil
}

// begin starts to carry a set out, with the state that an earlier process left in its status.
func (r *Reconciler) begin(found *v1.AddonSet) *running {
	made := &running{
		tally: rollout.NewTally(found.Name), clusters: map[string]*known{}, names: map[cluster.Key]string{}, granted: map[string]bool{},
		contents: map[string]string{},
		revision: found.Status.Revision, shown: shown{*found.Status.DeepCopy(), backoff.NewWrites(r.Options.StatusInterval)},
	}
	if found.Status.StartedAt != nil {
		made.startedAt = found.Status.StartedAt.Time
	}
	return made
}

// replace replaces the set by its new state. The caller holds the mutex.
func (r *Reconciler) replace(f *setFacts) {
	names := r.sharing(f.set)
	if before := f.running.set; before != nil {
		names = append(names, r.sharing(before)...)
	}
	f.running.set, f.running.counted = f.set, false
	f.running.decision = rollout.Decision{Open: rollout.NoGroup} // the groups have changed
	r.sets[f.name] = f.running
	r.changeCompetitors()
	r.recount(names)
}

// isOf reports whether a set was read from the present state of a copy.
func (s *set) isOf(found *v1.AddonSet) bool {
	leaveOut, _ := rollout.ReadLeaveOut(found.Annotations[v1.AnnotationLeaveOut])
	return s.isSame(&set{
		leaveOut: leaveOut, uid: found.UID, generation: found.Generation, seed: found.Annotations[v1.AnnotationSeed],
		deleting: !found.DeletionTimestamp.IsZero(), claim: addonset.ClaimOf(found),
	})
}

// isSame reports whether all relevant fields are equal.
func (s *set) isSame(other *set) bool {
	return s.uid == other.uid && s.generation == other.generation && s.seed == other.seed && s.deleting == other.deleting &&
		s.claim.Compare(other.claim) == 0 && slices.Equal(s.leaveOut, other.leaveOut)
}

// isSame reports whether the catalogues offer the same.
func (o *offers) isSame(other *offers) bool {
	if o.kkp != other.kkp || !maps.Equal(o.platform, other.platform) || !maps.Equal(o.unknown, other.unknown) ||
		len(o.entries) != len(other.entries) {
		return false
	}
	for addon, entry := range o.entries {
		if other.entries[addon] != entry {
			return false
		}
	}
	return true
}

// revise takes the revision, once for each change of the set and its catalogues, and writes a new one into the status
// before anything moves to it.
func (r *Reconciler) revise(ctx context.Context, f *setFacts) *loop.Outcome {
	r.read(f.name)
	r.mutex.Lock()
	from, isRevised := f.running.offers, f.running.revised == f.running.resolver
	before, started, known, kkp := f.running.revision, f.running.startedAt, f.running.contents, f.running.kkp
	r.mutex.Unlock()
	if isRevised {
		return nil
	}
	contents, err := contentsOf(f.set, from, known)
	if err != nil {
		return failed(err)
	}
	f.kkp = cmp.Or(from.kkp, kkp) // as with contents, a version that is unknown now makes no new revision
	revision, err := revisionOf(&f.copy.Spec, contents, f.kkp)
	if err != nil {
		return failed(err)
	}
	f.revision, f.contents = revision, contents
	isKnown := before != "" && f.copy.Status.ObservedGeneration == f.copy.Generation
	// After a start without a catalogue, its previous contents are unknown: the present ones are no change.
	if revision == before || isKnown && len(known) == 0 && lacks(from) && f.running.isFirst(contents) {
		r.keep(f, before, time.Time{})
		return nil
	}
	if err := r.adopt(ctx, f, before); err != nil {
		return failed(err)
	}
	now := waves.Began(r.Clock.Now(), started)
	if err := r.writeRevision(ctx, f, now); err != nil {
		return failed(err)
	}
	r.keep(f, revision, now)
	waves.Begins(r.Recorder, f.copy, revision)
	return nil
}

// adopt reads the copy past the cache, and adopts its status if an earlier process began a revision that this one
// does not know: to begin that revision again would forget its failures.
func (r *Reconciler) adopt(ctx context.Context, f *setFacts, before string) error {
	live, err := waves.CheckRevision(ctx, r.Reader, f.copy, before)
	if live == nil {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	found := r.begin(live)
	f.running.revision, f.running.startedAt, f.running.shown = found.revision, found.startedAt, found.shown
	f.running.contents, f.running.revised, f.running.counted = found.contents, nil, false
	for _, one := range f.running.clusters {
		one.Void()
	}
	return err
}

// isFirst reports whether contents are the first ones that were read, and stores them if there are none.
func (r *running) isFirst(contents map[string]string) bool {
	if r.first == nil {
		r.first = contents
	}
	return maps.Equal(r.first, contents)
}

// lacks reports whether an add-on is in no catalogue, or values of the platform are unavailable.
func lacks(from *offers) bool {
	for _, one := range from.platform {
		if one.content == "" {
			return true
		}
	}
	for _, entry := range from.entries {
		if entry == nil {
			return true
		}
	}
	return false
}

// keep stores the revision in memory; with a time, as a new one. Grants of another revision become void.
func (r *Reconciler) keep(f *setFacts, revision string, startedAt time.Time) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	f.running.revised = f.running.resolver
	if revision == f.revision {
		f.running.contents, f.running.kkp = f.contents, f.kkp
	}
	if startedAt.IsZero() {
		return
	}
	f.running.revision, f.running.startedAt, f.running.counted = revision, startedAt, false
	f.running.decision = rollout.Decision{Open: rollout.NoGroup}
	for _, one := range f.running.clusters {
		one.Void()
	}
}

// writeRevision writes only the revision into the status.
func (r *Reconciler) writeRevision(ctx context.Context, f *setFacts, at time.Time) error {
	wanted := f.running.shown.status.DeepCopy()
	started := metav1.NewTime(at)
	wanted.Revision, wanted.StartedAt = f.revision, &started
	wanted.Catalogues = "" // the counts are of the previous revision: the master must not use them
	return r.writeStatus(ctx, f, wanted)
}
