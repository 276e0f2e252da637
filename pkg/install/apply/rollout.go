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
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// RolloutOptions say how a rollout treats existing objects.
type RolloutOptions struct {
	// TargetNamespace is for namespaced objects whose scope Prepare could not know.
	TargetNamespace string
	// Adopt adopts objects of others, except objects of an installation that NameOf knows.
	Adopt bool
	// AdoptManagers are field managers that count as tools: Adopt makes their fields of an object ours.
	AdoptManagers []string
	// Release is the Helm release that is adopted with its objects; nil for none.
	Release *ownership.HelmMarks
	// NameOf returns the name of the installation with an ID; "" if none exists. It may be nil.
	NameOf func(id string) string
	// Neighbours share cluster-scoped objects, or gave some up; Shared are the recorded objects that are used.
	ownership.Neighbours
	Shared ownership.Inventory
	// LeftBy is the mark on CustomResourceDefinitions that an installation of the same add-on left.
	LeftBy string
	// LookFirst writes nothing until all kinds are served and all new names are free, or would become ours.
	LookFirst bool
	// Namespaces is shared with other rollouts on the cluster; it may be nil.
	Namespaces *Namespaces
	// Now returns the time; nil is time.Now.
	Now func() time.Time
}

// Progress is the state of a rollout. It is filled in even if Advance returns an error.
type Progress struct {
	Complete bool
	// Waiting resolves automatically, such as NotEstablished or NamespaceTerminating.
	Waiting []calls.Note
	// Refused does not resolve automatically, such as ObjectExists or Conflict; each Advance tries it again.
	Refused []calls.Note
	// Inventory has our objects in the order of applying; entries of others are unchanged.
	Inventory ownership.Inventory
	Shared    ownership.Inventory
	// Written counts accepted patches, Unchanged the objects that are recorded with the same content.
	Written, Unchanged int
	// Misbehaved has a note for each object with an untrue answer, which is dropped.
	Misbehaved []calls.Note
	// Taken has a note for each manager whose fields were removed because the API server refuses them together with the
	// wanted object.
	Taken []calls.Note
}

// Rollout writes the objects of one installation, each once. Only one goroutine may use it at a time.
type Rollout struct {
	owner          ownership.Owner
	options        RolloutOptions
	items          []*item
	declared       map[schema.GroupVersionKind]calls.Resource
	seenNamespaces map[string]bool
	gate           Gate
	// looked: LookFirst is fulfilled.
	looked bool
}

// Gate says whether a rollout may continue after Namespaces and CRDs.
type Gate func(ctx context.Context) (open bool, err error)

// SetGate sets the gate, which each Advance calls once Namespaces and CRDs are ready: hooks run there. While it is
// closed, no later stage is written, and Complete is false.
func (r *Rollout) SetGate(gate Gate) { r.gate = gate }

// SetNeighbours sets the other installations of the cluster.
func (r *Rollout) SetNeighbours(neighbours ownership.Neighbours) { r.options.Neighbours = neighbours }

type item struct {
	object *unstructured.Unstructured
	key    ownership.Key
	stage  calls.Stage
	// entry is the known one, renewed when applied; wanted is the new one. planned: the record has the object.
	entry, wanted ownership.Entry
	planned       bool
	// unchanged: it is recorded with this content. gone: it is recorded, but does not exist.
	unchanged, gone bool
	// done: nothing remains to be written. used: the object belongs to others.
	done, used bool
	// shared is the entry of a sibling's object; inherits: another's object becomes ours. gaveUp are the IDs of
	// installations that no longer have it.
	shared   *ownership.Entry
	inherits bool
	gaveUp   []string
	ready    bool
	reads    int
	// note says why it is not done or not ready; waiting: this resolves automatically.
	note    *calls.Note
	waiting bool
	written int
	// taken has the notes about fields of others that were removed.
	taken []calls.Note
	// searched is the content and refusal of a search for refused fields that found none (surplus.go); "" for none.
	searched string
	// queued: it waits for dry runs of a later reconciliation; inVain: it had its turn while others were queued.
	queued, inVain bool
	// sent is its size in bytes when sent last; untrue: the answer gave it impossible fields.
	sent   int
	untrue bool
	// since is when a definition was first seen as not established; zero before.
	since time.Time
}

// causes are the possible causes in the user cluster of notes with these reasons.
var causes = map[string]string{
	kubermaticv1.ReasonObjectExists: kubermaticv1.ReasonObjectOfOthers, kubermaticv1.ReasonConflict: kubermaticv1.ReasonFieldOfOthers,
	kubermaticv1.ReasonNamespaceTerminating: kubermaticv1.ReasonBeingDeleted,
}

func (i *item) wait(reason, message string) {
	i.note, i.waiting = &calls.Note{Key: i.key, Reason: reason, Message: message, Cause: causes[reason]}, true
}

// waitForEnd waits until an object that is being deleted no longer exists.
func (i *item) waitForEnd(reason string, finalizers []string) {
	i.wait(reason, fmt.Sprintf("%s is being deleted, and is created again once it is deleted%s", i.key, calls.HeldBy(finalizers)))
	i.note.Cause = kubermaticv1.ReasonBeingDeleted
}

func (i *item) refuse(reason, message string) {
	i.note, i.waiting = &calls.Note{Key: i.key, Reason: reason, Message: message, Cause: causes[reason]}, false
}

// Planned is the intent to record before the first write: the known entries, without content if it changes, and one
// without UID for each new object, so that a rollout continues after a crash.
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
			planned[i].Content = "" // either may be written by now
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
		TTL: ttlOf(object),
	}
}

// NewRollout plans the rollout of prepared objects. Known is the recorded inventory; entries
// without UID are Planned. Objects recorded as applied with the same content are not written.
func NewRollout(owner ownership.Owner, objects []*unstructured.Unstructured, known ownership.Inventory, options RolloutOptions) *Rollout {
	rollout := &Rollout{
		owner: owner, options: options, declared: calls.DeclaredKinds(objects), seenNamespaces: map[string]bool{},
	}
	if rollout.options.Now == nil {
		rollout.options.Now = time.Now
	}
	have := known.ByKey()
	for _, object := range objects {
		rollout.items = append(rollout.items, newItem(object, have))
	}
	for _, it := range rollout.items {
		it.unchanged = it.entry.IsAppliedAs(it.wanted)
		if calls.IsNamespace(it.object) {
			rollout.seenNamespaces[it.key.Name] = true
		} else if it.entry.UID != "" {
			rollout.seenNamespaces[it.key.Namespace] = true
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

// Advance applies as many stages as possible without waiting. An error is a failed call, and Advance may be called
// again at once; Progress has everything that users must resolve.
func (r *Rollout) Advance(ctx context.Context, target calls.Target) (Progress, error) {
	r.forgetNotes()
	w := r.writer(target)
	if may, err := r.mayWrite(ctx, w); err != nil || !may {
		return r.progress(), err
	}
	for at := range calls.StageCount {
		items := inStage(r.items, at)
		err := r.applyStage(ctx, w, items)
		r.recheckDefinitions()
		if err != nil || blocked(items) {
			return r.progress(), err
		}
		if at == calls.StageFoundation {
			r.rewriteAll(items)
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

func (r *Rollout) writer(target calls.Target) *writer {
	return &writer{
		RolloutOptions: r.options, owner: r.owner, target: target, now: r.options.Now(), shared: r.options.Shared.ByKey(),
		kinds: &calls.Kinds{Mapper: target.Mapper, Declared: r.declared},
	}
}

// forgetNotes prepares a new reconciliation. If objects wait for their kind, definitions are read again.
func (r *Rollout) forgetNotes() {
	waits := slices.ContainsFunc(r.items, func(it *item) bool {
		return it.stage != calls.StageFoundation && it.note != nil && it.waiting && it.note.Reason == kubermaticv1.ReasonWaitingForStage
	})
	queued := slices.ContainsFunc(r.items, func(it *item) bool { return it.queued })
	for _, it := range r.items {
		it.queued, it.inVain = false, it.inVain && queued
		it.note, it.taken, it.gaveUp, it.ready = nil, nil, nil, it.ready && (!waits || !calls.IsCRD(it.object))
	}
}

// rewriteAll makes everything be written again if a Namespace or CRD was deleted: its objects were deleted with it.
func (r *Rollout) rewriteAll(foundation []*item) {
	if !slices.ContainsFunc(foundation, func(it *item) bool { return it.gone }) {
		return
	}
	for _, it := range r.items {
		it.unchanged = it.unchanged && it.done
	}
}

// Remaining counts the objects that are still to be written.
func (r *Rollout) Remaining() (count int) {
	for _, it := range r.items {
		if !it.done && !it.unchanged {
			count++
		}
	}
	return count
}

func inStage(items []*item, at calls.Stage) []*item {
	return slices.DeleteFunc(slices.Clone(items), func(it *item) bool { return it.stage != at })
}

func (r *Rollout) applyStage(ctx context.Context, w *writer, items []*item) error {
	return calls.Each(ctx, items, func(ctx context.Context, it *item) error {
		if !it.done {
			r.setNamespace(w, it)
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

func (r *Rollout) setNamespace(w *writer, it *item) {
	where, served, err := w.kinds.Find(it.object.GroupVersionKind())
	if err != nil || !served || !where.Namespaced || it.key.Namespace != "" {
		return
	}
	it.object = it.object.DeepCopy()
	it.object.SetNamespace(r.options.TargetNamespace)
	it.key = ownership.KeyOf(it.object)
	it.entry.Key, it.wanted.Key = it.key, it.key
}

// blocked says whether the next stage must wait. Unserved kinds block nothing else.
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
		if it.done && it.unchanged {
			progress.Unchanged++
		}
		progress.Taken = append(progress.Taken, it.taken...)
		it.report(&progress.Waiting, &progress.Refused, &progress.Misbehaved)
		if !it.used && (it.done || it.planned) {
			entry := it.entry
			entry.Created = entry.Created && entry.IsFoundation()
			progress.Inventory = append(progress.Inventory, entry)
		}
	}
	return progress
}

func (r *Rollout) checkNamespaces(ctx context.Context, w *writer) error {
	missing := map[string]*item{}
	for _, it := range r.items {
		if name := it.key.Namespace; name != "" && missing[name] == nil && !r.seenNamespaces[name] && !r.options.Namespaces.has(name) {
			missing[name] = it
		}
	}
	err := calls.Each(ctx, slices.Collect(maps.Values(missing)), w.checkNamespace)
	for name, it := range missing {
		if err == nil && it.note == nil {
			r.seenNamespaces[name] = true
			r.options.Namespaces.add(name)
		}
	}
	return err
}

func (i *item) report(waiting, refused, misbehaved *[]calls.Note) {
	if i.untrue {
		*misbehaved = append(*misbehaved, calls.Note{
			Key: i.key, Reason: kubermaticv1.ReasonClusterMisbehaves,
			Message: fmt.Sprintf("the API server reports more fields of %s than were sent: they are not recorded, and drift of the object is not "+
				"detected", i.key),
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

// recheckDefinitions makes ready definitions of an unserved kind be read again: they may have been deleted. The objects
// of a recreated definition are written again.
func (r *Rollout) recheckDefinitions() {
	lost, recreated := map[string]bool{}, map[string]bool{}
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
			recreated[group] = recreated[group] || it.written > 0 && !it.done
		}
	}
	for _, it := range r.items {
		if _, own := r.declared[it.object.GroupVersionKind()]; own && recreated[it.key.Group] {
			it.done, it.ready = false, false
		}
	}
}
