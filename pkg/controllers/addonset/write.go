package addonset

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

// fieldOwner is the field manager of this controller's writes.
const fieldOwner = "trellis-addon-set"

// task has the writes for one set in one cluster.
type task struct {
	of    *running
	known *known
	// set and cluster are the cached ones that the task was planned with.
	set     *set
	cluster target.Description
	removal v1.RemovalPolicy
	pace    installation.Pace
	// startedAt is when the revision began.
	startedAt time.Time
	steps     []step
	// competitors are the sets that the plan considered.
	competitors *competitors
	// moves says that the task is more than repairs: the cluster occupies its place meanwhile.
	moves bool
}

// taskFor is the task of a set that may move a cluster, or has a repair to make there. The caller holds the mutex.
func (r *Reconciler) taskFor(of *running, in *place, one *known, planned *plan) task {
	group := of.strategy.Groups[of.strategy.GroupOf(in.labels)]
	made := task{
		of: of, known: one, set: of.set, cluster: *in.found, removal: of.removal, startedAt: of.startedAt,
		pace: installation.Pace{Soak: group.Soak, Deadline: group.ProgressDeadline}, competitors: r.competitors,
	}
	for _, step := range planned.steps {
		isMove := !step.repair
		if isMove && !one.IsGranted() ||
			step.kind == v1.ChangeRemove && !of.mayRemove(step.live) {
			continue
		}
		made.moves = made.moves || isMove
		made.steps = append(made.steps, step)
	}
	// Removals come first: a name or a place may belong to another item. Among those, dependents come first: an
	// installation whose removal began waits for no other.
	needed := neededBy(made.steps)
	slices.SortStableFunc(made.steps, func(a, b step) int {
		return cmp.Or(removalsFirst(a)-removalsFirst(b), needed[b.liveName()]-needed[a.liveName()])
	})
	if made.moves {
		one.Begin()
	}
	return made
}

// key is the key of the task's cluster in memory.
func (t *task) key() cluster.Key { return cluster.KeyOf(t.cluster.Ref) }

// neededBy counts the dependencies, also indirect ones, of each installation among those to be removed: a dependent
// has more than the one it depends on.
func neededBy(steps []step) map[string]int {
	dependsOn := map[string][]v1.InstallationName{}
	for _, one := range steps {
		if one.kind == v1.ChangeRemove {
			dependsOn[one.live.Name] = one.live.Spec.DependsOn
		}
	}
	counts := make(map[string]int, len(dependsOn))
	for item := range dependsOn {
		seen := map[string]bool{}
		for queue := []string{item}; len(queue) > 0; queue = queue[1:] {
			for _, next := range dependsOn[queue[0]] {
				if _, goes := dependsOn[string(next)]; goes && !seen[string(next)] {
					seen[string(next)] = true
					queue = append(queue, string(next))
				}
			}
		}
		counts[item] = len(seen)
	}
	return counts
}

// mayRemove reports whether the guard has checked a removal, and it does not wait for approval.
func (r *running) mayRemove(live *v1.AddonInstallation) bool {
	return r.deleting || r.guard.Allowed()(live)
}

func removalsFirst(s step) int {
	if s.kind == v1.ChangeRemove {
		return 0
	}
	return 1
}

// write executes the tasks. A failure does not stop the others. After a failed write, the item is evaluated again at
// once: it may have lost its place, and others wait for it.
func (r *Reconciler) write(ctx context.Context, f *clusterFacts) *loop.Outcome {
	if f.problem != nil {
		return failed(f.problem)
	}
	if len(f.tasks) == 0 {
		return r.rest(f.next)
	}
	for _, one := range f.tasks {
		if err := r.carryOut(ctx, one); err != nil {
			f.problem = err
		}
	}
	if f.problem != nil {
		return cmp.Or(r.countCluster(ctx, f), failed(f.problem))
	}
	return &loop.Outcome{Kind: loop.Checkpoint, Recheck: loop.AtOnce} // the next reconciliation counts the writes
}

func (r *Reconciler) carryOut(ctx context.Context, one task) error {
	var problem error
	var refused string
	wrote := false
	at := r.Clock.Now()
	stale := r.checkRemovals(ctx, one)
	for _, step := range one.steps {
		var err error
		if step.kind == v1.ChangeRemove {
			if err = stale; err == nil {
				err = r.remove(ctx, one, step)
			}
		} else {
			err = r.apply(ctx, one, step, at)
		}
		if err != nil {
			problem, refused = err, step.item
			continue
		}
		if wrote = true; !step.repair {
			r.moved.add()
		}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !one.moves {
		return problem
	}
	one.known.End()
	if problem == nil {
		one.known.Done()
		return nil
	}
	if wrote {
		one.known.Wrote()
	}
	one.known.Refuse(refused, problem, r.Clock.Now())
	return problem
}

// apply creates an installation, or corrects it.
func (r *Reconciler) apply(ctx context.Context, one task, s step, at time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, waves.WriteTimeout)
	defer cancel()
	wanted := s.intent(one.cluster.Ref)
	wanted.Stamps = stampsOf(one, s, at)
	content, _, err := wanted.Content()
	if err != nil {
		return err
	}
	if s.live == nil {
		if err := r.isFree(ctx, wanted.Namespace, wanted.Name); err != nil {
			return err
		}
	} else { // so that another object of the name is not written
		content["metadata"].(map[string]any)["uid"] = string(s.live.UID)
	}
	object := &v1.AddonInstallation{}
	object.Namespace, object.Name = wanted.Namespace, wanted.Name
	if err := r.patch(ctx, object, types.ApplyPatchType, content, client.ForceOwnership); err != nil {
		r.markWriteUnknown(one.key(), object, err)
		return fmt.Errorf("applying installation %q in %q: %w", wanted.Name, wanted.Namespace, err)
	}
	r.note(one.key(), object, false)
	if !installation.IsRight(object, &wanted, s.target.digest) {
		return fmt.Errorf("installation %q in %q was stored with content that differs from what was written: check admission webhooks and the "+
			"version of the CRD", wanted.Name, wanted.Namespace)
	}
	return nil
}

// stampsOf are the annotations of a write; a repair keeps those of the previous move.
func stampsOf(one task, s step, at time.Time) map[string]string {
	if s.repair {
		return installation.KeptStamps(s.live)
	}
	return installation.Move{At: at, StartedAt: one.startedAt, Pace: one.pace}.Stamps(s.live)
}

// isFree asks past the cache whether a name is still free: an object that another client created meanwhile is not
// ours.
func (r *Reconciler) isFree(ctx context.Context, namespace, name string) error {
	found := &v1.AddonInstallation{}
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("getting installation %q in %q: %w", name, namespace, err)
	}
	return fmt.Errorf("installation %q in %q exists already", name, namespace)
}

// checkRemovals asks the API server whether the copy and the cluster are still those that removals were planned with:
// a cache may be stale, and a removal can't be reversed completely.
func (r *Reconciler) checkRemovals(ctx context.Context, one task) error {
	if !slices.ContainsFunc(one.steps, func(s step) bool { return s.kind == v1.ChangeRemove }) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, waves.WriteTimeout)
	defer cancel()
	if err := r.checkCopies(ctx, one); err != nil {
		return err
	}
	live, err := r.Live.Live(ctx, one.cluster.Ref)
	if err != nil {
		return fmt.Errorf("reading the Cluster before a removal: %w", err)
	}
	if clusterChanged(one.cluster, live) {
		return fmt.Errorf("nothing is removed: Cluster %q differs from the cache", one.cluster.LongName())
	}
	return nil
}

// checkCopies reads the copies of all sets: an installation that one set drops may belong to another.
func (r *Reconciler) checkCopies(ctx context.Context, planned task) error {
	of := planned.set
	copies := metav1.PartialObjectMetadataList{}
	copies.SetGroupVersionKind(v1.GroupVersion.WithKind("AddonSetList"))
	if err := r.Reader.List(ctx, &copies, client.InNamespace(r.Options.CatalogueNamespace)); err != nil {
		return fmt.Errorf("listing AddonSets before a removal: %w", err)
	}
	at := slices.IndexFunc(copies.Items, func(one metav1.PartialObjectMetadata) bool { return one.Name == of.name })
	if at < 0 {
		return fmt.Errorf("AddonSet %q exists in the cache only: nothing is removed", of.name)
	}
	found := &copies.Items[at]
	if found.UID != of.uid || found.Generation != of.generation || of.deleting && found.DeletionTimestamp.IsZero() {
		return fmt.Errorf("AddonSet %q differs from the cache: nothing is removed", of.name)
	}
	return r.checkSeen(copies.Items, planned.competitors)
}

// remove removes an installation that is no longer in the set, by its removal policy, unless it changed since it was
// read.
func (r *Reconciler) remove(ctx context.Context, one task, s step) error {
	ctx, cancel := context.WithTimeout(ctx, waves.WriteTimeout)
	defer cancel()
	live := s.live.DeepCopy()
	switch one.removal {
	case v1.RemovalRelease:
		return r.letLive(ctx, one.key(), live)
	case v1.RemovalOrphan:
		if err := r.orphan(ctx, one.key(), live); err != nil {
			return err
		}
	}
	exactly := client.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion}
	if err := r.Client.Delete(ctx, live, exactly); client.IgnoreNotFound(err) != nil {
		r.markWriteUnknown(one.key(), live, err)
		return fmt.Errorf("deleting installation %q in %q: %w", live.Name, live.Namespace, err)
	}
	r.note(one.key(), live, true)
	return nil
}

// orphan sets an installation to leave its objects in the cluster.
func (r *Reconciler) orphan(ctx context.Context, in cluster.Key, live *v1.AddonInstallation) error {
	if live.Spec.DeletionPolicy == v1.DeletionOrphan {
		return nil
	}
	content := identified(live)
	content["spec"] = map[string]any{"deletionPolicy": v1.DeletionOrphan}
	if err := r.patch(ctx, live, types.MergePatchType, content); err != nil {
		r.markWriteUnknown(in, live, err)
		return fmt.Errorf("setting deletionPolicy of installation %q in %q: %w", live.Name, live.Namespace, err)
	}
	r.note(in, live.DeepCopy(), false)
	return nil
}

// letLive removes the fields that bind an installation to its set: the labels, annotations and the pin.
func (r *Reconciler) letLive(ctx context.Context, in cluster.Key, live *v1.AddonInstallation) error {
	content := identified(live)
	metadata := content["metadata"].(map[string]any)
	metadata["labels"] = map[string]any{v1.LabelSet: nil, v1.LabelManagedBy: nil}
	metadata["annotations"] = map[string]any{
		v1.AnnotationDigest: nil, v1.AnnotationMoved: nil, v1.AnnotationSick: nil,
		v1.AnnotationAdopt: nil, v1.AnnotationAllowDowngrade: nil, v1.AnnotationAllowPrune: nil,
	}
	content["spec"] = map[string]any{"addonRef": map[string]any{"digest": nil}}
	if err := r.patch(ctx, live, types.MergePatchType, content); err != nil {
		r.markWriteUnknown(in, live, err)
		return fmt.Errorf("releasing installation %q in %q: %w", live.Name, live.Namespace, err)
	}
	r.note(in, live, false)
	return nil
}

// identified begins a patch that the API server refuses for an object that changed.
func identified(live *v1.AddonInstallation) map[string]any {
	return map[string]any{"metadata": map[string]any{"uid": string(live.UID), "resourceVersion": live.ResourceVersion}}
}

// note stores the API server's answer.
func (r *Reconciler) note(in cluster.Key, answer *v1.AddonInstallation, removed bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.written.Put(in, answer, removed, r.Clock.Now())
}

// markWriteUnknown stores that a failed call had no answer. The write may have arrived: the next reconciliation asks the
// API server (confirm) before it writes again. A second write would move the installation again, and restart its soak
// time.
func (r *Reconciler) markWriteUnknown(in cluster.Key, about client.Object, err error) {
	if !waves.IsUnanswered(err) {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.written.MarkUnknown(in, about.GetName(), r.Clock.Now())
}

func (r *Reconciler) patch(
	ctx context.Context, object client.Object, kind types.PatchType, content map[string]any, options ...client.PatchOption,
) error {
	encoded, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return r.Client.Patch(ctx, object, client.RawPatch(kind, encoded), append(options, client.FieldOwner(fieldOwner))...)
}
