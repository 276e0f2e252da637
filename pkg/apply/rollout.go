package apply

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// RolloutOptions say how a rollout treats what it finds.
type RolloutOptions struct {
	// TargetNamespace is for namespaced objects whose scope Prepare could not know.
	TargetNamespace string
	// Adopt takes over objects that belong to somebody else, but for those of an installation that NameOf knows.
	Adopt bool
	// Release is a Helm release that is gone on with: what Helm made for it is taken over like that, too; nil: there is none.
	Release *ownership.HelmMarks
	// NameOf gives the name of the installation with an ID, for messages; "" where there is none any more. It may be nil.
	NameOf func(id string) string
	// Siblings are the other installations of the add-on, with which what is of the whole cluster is shared; it may be nil.
	Siblings ownership.Siblings
	// Shared are the objects of siblings that the record says are used.
	Shared ownership.Inventory
	// Namespaces are those that other rollouts on the cluster saw; it may be nil.
	Namespaces *Namespaces
	// Now tells the time; nil is time.Now.
	Now func() time.Time
}

// Progress is how far a rollout has come. It is filled in also where Advance returns an error.
type Progress struct {
	// Complete says that every object is applied; nothing is Waiting or Refused then.
	Complete bool
	// Waiting is for what comes by itself: WaitingForStage, NotEstablished, NamespaceTerminating, NamespaceMissing.
	Waiting []calls.Note
	// Refused is for what does not: ObjectExists, Conflict, ImmutableField, KindNotServed, ObjectInvalid; tried again each time.
	Refused []calls.Note
	// Inventory has an entry for each object that is ours by now, in applying order; others are as they were known.
	Inventory ownership.Inventory
	// Shared has an entry for each object of another installation of the add-on that is used.
	Shared ownership.Inventory
	// Written counts the patches that were accepted, over the whole rollout, Kept the objects that are recorded as applied with the
	// content that they are to have: those are not written.
	Written, Kept int
	// Misbehaved has a note, ClusterMisbehaves, about each object of which an answer said what can't be; that is dropped.
	Misbehaved []calls.Note
}

// Rollout writes the objects of one installation, stage by stage. It keeps what it did in memory: no Advance writes again
// what an earlier one has written. One goroutine at a time may use it.
type Rollout struct {
	owner    ownership.Owner
	options  RolloutOptions
	items    []*item
	declared map[schema.GroupVersionKind]calls.Resource
	// standing are namespaces that were seen, so that they are not asked for again.
	standing map[string]bool
	// gate stands behind the foundation; see Hold.
	gate Gate
}

// Gate says whether a rollout may go on to objects that are no Namespaces and CRDs.
type Gate func(ctx context.Context) (open bool, err error)

// Hold has the rollout ask the gate in each Advance, once Namespaces and CRDs are ready: hooks run there. Behind a shut one
// nothing is written, and Complete is false.
func (r *Rollout) Hold(gate Gate) { r.gate = gate }

// ShareWith has the rollout ask for the siblings by this function from now on.
func (r *Rollout) ShareWith(siblings ownership.Siblings) { r.options.Siblings = siblings }

type item struct {
	object *unstructured.Unstructured
	key    ownership.Key
	stage  calls.Stage
	// entry as it was known, renewed when the object is applied; wanted is what it is to say then.
	entry, wanted ownership.Entry
	// planned says that the record knows the object, with or without a UID.
	planned bool
	// kept says that the record has the object as applied just so: it is not written. gone, that the record has one that is no more.
	kept, gone bool
	// done says that nothing is to be written any more; used, that the object stays somebody else's.
	done, used bool
	// shared is the entry of an object that a sibling has; inherits, that one of another installation becomes ours.
	shared   *ownership.Entry
	inherits bool
	// ready is for the stage that is waited for.
	ready bool
	// reads counts how often it was looked for and not ready.
	reads int
	// note is why it is not done or not ready; waiting, that it comes by itself.
	note    *calls.Note
	waiting bool
	written int
	// sent is how many bytes the object took to send last; lied says that the answer gave it fields that it can't have.
	sent int
	lied bool
	// since is when a definition that is not established was looked at first; zero before.
	since time.Time
}

func (i *item) wait(reason, message string) {
	i.note, i.waiting = &calls.Note{Key: i.key, Reason: reason, Message: message}, true
}

func (i *item) refuse(reason, message string) {
	i.note, i.waiting = &calls.Note{Key: i.key, Reason: reason, Message: message}, false
}

// Planned is the intent to record before the first write: the known entries, those that are about to change without their
// content, and one without a UID for each object that is not among them. A rollout takes an object that exists for ours if it is
// planned and carries our label, which is how one goes on after a crash.
func Planned(objects []*unstructured.Unstructured, known ownership.Inventory) ownership.Inventory {
	planned := slices.Clone(known)
	at := make(map[ownership.Key]int, len(known))
	for i := range planned {
		at[planned[i].Key] = i
	}
	for _, object := range objects {
		wanted := plannedEntry(object)
		if i, found := at[wanted.Key]; !found {
			planned = append(planned, wanted)
		} else if planned[i].Content != wanted.Content {
			planned[i].Content = "" // from the first write on it may be either
		}
	}
	slices.SortStableFunc(planned, func(a, b ownership.Entry) int {
		return cmp.Compare(calls.StageOf(a.GroupKind()), calls.StageOf(b.GroupKind()))
	})
	return planned
}

func plannedEntry(object *unstructured.Unstructured) ownership.Entry {
	return ownership.Entry{
		Key: ownership.KeyOf(object), Version: object.GroupVersionKind().Version,
		Content: ownership.ContentDigest(object), Orphan: ownership.StaysBehind(object), Replicas: replicasOf(object),
	}
}

// NewRollout plans the rollout of prepared objects. Known is the inventory of the record: with UIDs for what is ours
// already, without for what is Planned. What it has as applied with the content of the object is not written.
func NewRollout(owner ownership.Owner, objects []*unstructured.Unstructured, known ownership.Inventory, options RolloutOptions) *Rollout {
	rollout := &Rollout{
		owner: owner, options: options, declared: calls.DeclaredKinds(objects), standing: map[string]bool{},
	}
	if rollout.options.Now == nil {
		rollout.options.Now = time.Now
	}
	have := known.ByKey()
	for _, object := range objects {
		rollout.items = append(rollout.items, newItem(object, have))
	}
	for _, it := range rollout.items {
		it.kept = it.entry.IsAppliedAs(it.wanted)
		if it.entry.UID != "" || calls.IsNamespace(it.object) {
			rollout.standing[it.namespace()] = true
		}
	}
	slices.SortStableFunc(rollout.items, func(a, b *item) int { return cmp.Compare(a.stage, b.stage) })
	return rollout
}

func newItem(object *unstructured.Unstructured, have map[ownership.Key]ownership.Entry) *item {
	wanted := plannedEntry(object)
	it := &item{object: object, key: wanted.Key, stage: calls.StageOf(wanted.GroupKind()), entry: wanted, wanted: wanted}
	if entry, found := have[it.key]; found {
		it.planned, it.entry = true, entry
	}
	return it
}

// namespace is the one the item stands in, or is.
func (i *item) namespace() string {
	if calls.IsNamespace(i.object) {
		return i.key.Name
	}
	return i.key.Namespace
}

// Advance applies as many stages as can be without waiting. An error is a call that failed and may be tried again at once
// by calling Advance again; everything that needs somebody is in Progress instead.
func (r *Rollout) Advance(ctx context.Context, target calls.Target) (Progress, error) {
	r.beginAnew()
	w := &writer{
		RolloutOptions: r.options, owner: r.owner, target: target, now: r.options.Now(), shared: r.options.Shared.ByKey(),
		kinds: &calls.Kinds{Mapper: target.Mapper, Declared: r.declared},
	}
	if err := r.checkNamespaces(ctx, w); err != nil || blocked(r.items) {
		return r.progress(), err
	}
	for at := range calls.StageCount {
		items := inStage(r.items, at)
		err := r.applyStage(ctx, w, items)
		r.revisit()
		if err != nil || blocked(items) {
			return r.progress(), err
		}
		if at == calls.StageFoundation {
			r.doubt(items)
		}
		if at != calls.StageFoundation || r.gate == nil {
			continue
		}
		if open, err := r.gate(ctx); err != nil || !open {
			progress := r.progress()
			progress.Complete = false
			return progress, err
		}
	}
	return r.progress(), nil
}

// beginAnew forgets why items are not through. Where something waits for its kind, the definition may be gone by now.
func (r *Rollout) beginAnew() {
	waits := slices.ContainsFunc(r.items, func(it *item) bool {
		return it.stage != calls.StageFoundation && it.note != nil && it.waiting && it.note.Reason == kubermaticv1.ReasonWaitingForStage
	})
	for _, it := range r.items {
		it.note, it.ready = nil, it.ready && (!waits || !calls.IsCRD(it.object))
	}
}

// doubt has everything written where a Namespace or CRD was gone: what stood on it went with it.
func (r *Rollout) doubt(foundation []*item) {
	if !slices.ContainsFunc(foundation, func(it *item) bool { return it.gone }) {
		return
	}
	for _, it := range r.items {
		it.kept = it.kept && it.done
	}
}

// Left counts the objects that are still to be written.
func (r *Rollout) Left() (count int) {
	for _, it := range r.items {
		if !it.done && !it.kept {
			count++
		}
	}
	return count
}

func inStage(items []*item, at calls.Stage) []*item {
	return slices.DeleteFunc(slices.Clone(items), func(it *item) bool { return it.stage != at })
}

// applyStage writes what is not written, and looks whether what has to be waited for is there.
func (r *Rollout) applyStage(ctx context.Context, w *writer, items []*item) error {
	return calls.Each(ctx, items, func(ctx context.Context, it *item) error {
		if !it.done {
			r.place(w, it)
			if err := w.write(ctx, it); err != nil {
				return err
			}
		}
		if it.done && !it.ready {
			return w.checkReady(ctx, it)
		}
		return nil
	})
}

// place gives an object its namespace where Prepare did not know that its kind has one.
func (r *Rollout) place(w *writer, it *item) {
	where, served, err := w.kinds.Find(it.object.GroupVersionKind())
	if err != nil || !served || !where.Namespaced || it.key.Namespace != "" {
		return
	}
	it.object = it.object.DeepCopy()
	it.object.SetNamespace(r.options.TargetNamespace)
	it.key = ownership.KeyOf(it.object)
	it.entry.Key, it.wanted.Key = it.key, it.key
}

// blocked says whether the next stage has to wait: for what is not there yet, or because something was refused. Kinds that
// are not served hold nothing else up.
func blocked(items []*item) bool {
	return slices.ContainsFunc(items, func(it *item) bool {
		return it.note != nil && it.note.Reason != kubermaticv1.ReasonKindNotServed
	})
}

func (r *Rollout) progress() Progress {
	progress := Progress{Complete: true, Shared: sharedOf(r.items, r.options.Shared.ByKey())}
	for _, it := range r.items {
		progress.Complete = progress.Complete && it.done && it.ready
		progress.Written += it.written
		if it.done && it.kept {
			progress.Kept++
		}
		it.report(&progress.Waiting, &progress.Refused, &progress.Misbehaved)
		if !it.used && (it.done || it.planned) {
			entry := it.entry
			entry.Created = entry.Created && entry.IsFoundation()
			progress.Inventory = append(progress.Inventory, entry)
		}
	}
	return progress
}

// checkNamespaces looks for the namespaces that the objects expect to be there, before the first write.
func (r *Rollout) checkNamespaces(ctx context.Context, w *writer) error {
	missing := map[string]*item{}
	for _, it := range r.items {
		if name := it.key.Namespace; name != "" && missing[name] == nil && !r.standing[name] && !r.options.Namespaces.stood(name) {
			missing[name] = it
		}
	}
	err := calls.Each(ctx, slices.Collect(maps.Values(missing)), w.findNamespace)
	for name, it := range missing {
		if err == nil && it.note == nil {
			r.standing[name] = true
			r.options.Namespaces.saw(name)
		}
	}
	return err
}

// report adds the notes about an object to those of others.
func (i *item) report(waiting, refused, misbehaved *[]calls.Note) {
	if i.lied {
		*misbehaved = append(*misbehaved, calls.Note{
			Key: i.key, Reason: kubermaticv1.ReasonClusterMisbehaves,
			Message: fmt.Sprintf("the API server says of %s that it has more fields than were sent: "+
				"they are not kept, and changes of the object's fields are not seen", i.key),
		})
	}
	switch {
	case i.note == nil:
	case i.waiting:
		*waiting = append(*waiting, *i.note)
	default:
		*refused = append(*refused, *i.note)
	}
}

// revisit has a rollout read a definition again that was ready and whose kind is not served: it may have been deleted meanwhile.
// What was written of its kinds went with one that is made anew, and is written again.
func (r *Rollout) revisit() {
	lost, anew := map[string]bool{}, map[string]bool{}
	for _, it := range r.items {
		_, own := r.declared[it.object.GroupVersionKind()]
		if own && it.note != nil && it.note.Reason == kubermaticv1.ReasonWaitingForStage {
			lost[it.key.Group] = true
		}
	}
	for _, it := range r.items {
		if calls.IsCRD(it.object) {
			group := ownership.GroupOf(it.key)
			it.ready = it.ready && !lost[group]
			anew[group] = anew[group] || it.written > 0 && !it.done
		}
	}
	for _, it := range r.items {
		if _, own := r.declared[it.object.GroupVersionKind()]; own && anew[it.key.Group] {
			it.done, it.ready = false, false
		}
	}
}
