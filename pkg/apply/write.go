package apply

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/fieldsets"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// patchTries of one object in one go: plainly, with the UID mended, without replicas, with force, once more for a race.
const patchTries = 5

// writer writes objects for one owner to one cluster.
type writer struct {
	RolloutOptions
	owner  ownership.Owner
	target calls.Target
	kinds  *calls.Kinds
	// now is when the pass began.
	now time.Time
	// shared are the objects of siblings that the record says are used.
	shared map[ownership.Key]ownership.Entry

	lock  sync.Mutex
	asked bool
	found []ownership.Sibling
}

// attempt is how the next patch of an object is sent.
type attempt struct {
	// force takes fields over; withoutReplicas leaves spec.replicas to an autoscaler.
	force, withoutReplicas bool
	// recreated says that the object was deleted so that it can be made anew.
	recreated bool
	// ifNew has the API server refuse the patch where there is an object.
	ifNew bool
	// dryRun has the API server say only what would come of it.
	dryRun bool
}

// write applies one object: it ends done, or with a note, or with the error of a call that may be tried again.
func (w *writer) write(ctx context.Context, it *item) error {
	client, served, err := w.client(it)
	if err != nil || !served {
		return err
	}
	if settled, err := w.yield(ctx, it); err != nil || settled {
		return err
	}
	if it.kept {
		it.done = true
		return nil
	}
	if it.entry.UID == "" {
		if settled, err := w.create(ctx, client, it); err != nil || settled {
			return err
		}
		if err := w.claim(ctx, client, it); err != nil || it.done || it.note != nil {
			return err
		}
	}
	if it.isWrittenOnce() {
		it.done = true
		return nil
	}
	return w.patch(ctx, client, it, attempt{})
}

// isWrittenOnce says whether an object that is there is not to be written again.
func (i *item) isWrittenOnce() bool {
	return i.entry.UID != "" && (isCreateOnly(i.object) || i.entry.Finished && i.entry.Content == i.wanted.Content)
}

// client is for an object; one of a kind that is not served is refused.
func (w *writer) client(it *item) (client calls.Client, served bool, err error) {
	where, served, err := w.kinds.Find(it.object.GroupVersionKind())
	if err != nil {
		return calls.Client{}, false, fmt.Errorf("looking up the kind of %q: %w", it.key, err)
	}
	if !served {
		it.refuse(kubermaticv1.ReasonKindNotServed, fmt.Sprintf("%s: the user cluster does not serve %s: "+
			"install what brings the kind, it is applied then", it.key, it.object.GroupVersionKind().GroupVersion()))
		return calls.Client{}, false, nil
	}
	return calls.ClientOf(w.target, where, it.object.GetNamespace()), true, nil
}

// patch sends the object until it is accepted, or there is nothing left to mend.
func (w *writer) patch(ctx context.Context, client calls.Client, it *item, how attempt) error {
	var err error
	for range patchTries {
		var live *metav1.PartialObjectMetadata
		live, err = w.send(ctx, client, it, how)
		if err == nil {
			w.accept(it, live)
			if how.withoutReplicas {
				it.entry.Fields = fieldsets.WithReplicas(it.entry.Fields)
			}
			return nil
		}
		again, failure := w.resolveConflict(ctx, client, it, err, &how)
		if failure != nil || !again {
			return failure
		}
	}
	return fmt.Errorf("applying %q: it changes under the hand: %w", it.key, calls.Masked(it.object, err))
}

func (w *writer) send(ctx context.Context, client calls.Client, it *item, how attempt) (*metav1.PartialObjectMetadata, error) {
	body, err := patchBody(it, how).MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding %q: %w", it.key, err)
	}
	it.sent = len(body)
	options := metav1.PatchOptions{
		FieldManager: w.owner.FieldManager(), Force: &how.force,
		FieldValidation: metav1.FieldValidationIgnore, // by default unknown fields make warnings, which nobody here would read
	}
	if how.dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return client.Patch(ctx, it.key.Name, types.ApplyPatchType, body, options)
}

// patchBody is the object as it is sent: with the UID that we know, without replicas that an autoscaler owns.
// One that is to be new has no UID, and a version that none has.
func patchBody(it *item, how attempt) *unstructured.Unstructured {
	if it.entry.UID == "" && !how.withoutReplicas && !how.ifNew {
		return it.object
	}
	body := it.object.DeepCopy()
	if how.ifNew {
		body.SetResourceVersion(unusedVersion)
	}
	if it.entry.UID != "" {
		body.SetUID(it.entry.UID)
	}
	if how.withoutReplicas {
		unstructured.RemoveNestedField(body.Object, "spec", "replicas")
	}
	return body
}

// accept takes an answer over: the object is ours now. Fields that the object does not have are nobody's, so that no record grows
// by what the API server makes up; then only the object's being there tells drift.
func (w *writer) accept(it *item, live *metav1.PartialObjectMetadata) {
	it.written++
	created := it.entry.Created
	it.entry, it.planned = it.wanted, true
	it.entry.UID, it.entry.Created = live.UID, created
	if !isCreateOnly(it.object) {
		fields, ok := fieldsets.Believable(live.ManagedFields, w.owner.FieldManager(), it.sent)
		it.entry.Fields, it.lied = fields, !ok
	}
	it.entry.Applied = !it.lied
	if live.DeletionTimestamp != nil {
		w.awaitEnd(it, live)
		return
	}
	it.done = true
}

// awaitEnd waits for the end of an object that is being deleted; it is made anew then.
func (w *writer) awaitEnd(it *item, live *metav1.PartialObjectMetadata) {
	reason := kubermaticv1.ReasonWaitingForStage
	if calls.IsNamespace(it.object) {
		reason = kubermaticv1.ReasonNamespaceTerminating
	}
	it.wait(reason, fmt.Sprintf("%s is being deleted, and is made anew when it is gone%s", it.key, calls.HeldBy(live.Finalizers)))
}

// resolveConflict finds out why a patch was refused, and says whether to send it again.
func (w *writer) resolveConflict(ctx context.Context, client calls.Client, it *item, cause error, how *attempt) (again bool, err error) {
	fields := calls.ConflictingFields(cause)
	if len(fields) == 0 && !isUIDMismatch(cause) {
		return w.explain(ctx, client, it, cause, how)
	}
	live, err := client.Read(ctx, it.key)
	if err != nil {
		return false, err
	}
	if live == nil {
		it.entry.UID, it.entry.Fields, it.entry.Created, it.gone = "", nil, true, true
		how.force, how.withoutReplicas = false, false
		return true, nil
	}
	if live.UID != it.entry.UID && it.entry.UID != "" {
		if err := w.decide(ctx, it, live, w.ownershipOf(it, live)); err != nil {
			return false, err
		}
		if how.force = false; it.inherits {
			return true, w.inherit(ctx, client, it, live)
		}
		return it.note == nil && !it.done, nil
	}
	if len(fields) == 0 {
		return true, nil
	}
	if err := checkConflicts(it, fields); err != nil {
		return false, err
	}
	return w.resolveFields(it, live, fields, how), nil
}

// resolveFields decides about fields that others own: replicas are left to whoever scales, unless the add-on has changed them; fields
// recorded as ours are repaired, all others are theirs.
func (w *writer) resolveFields(it *item, live *metav1.PartialObjectMetadata, fields []string, how *attempt) bool {
	if calls.IsNamespace(it.object) && it.entry.UID == "" {
		it.done, it.used = true, true // somebody made it since it was looked for
		return false
	}
	if fieldsets.IsScaled(live.ManagedFields) && slices.Contains(fields, fieldsets.ReplicasPath) {
		if it.changesReplicas() {
			how.force = true
		} else {
			how.withoutReplicas = true
		}
		fields = slices.DeleteFunc(fields, func(field string) bool { return field == fieldsets.ReplicasPath })
	}
	if len(fields) == 0 {
		return true
	}
	ours := fieldsets.Among(it.entry.Fields, fields)
	fields = slices.DeleteFunc(fields, ours.Has)
	owners := fieldsets.OwnersOf(live.ManagedFields, fields, w.owner.FieldManager())
	for _, field := range fields {
		if w.Adopt && !w.exists(owners[field]) {
			continue
		}
		it.refuse(kubermaticv1.ReasonConflict, fmt.Sprintf("%s: field %s belongs to %s: take it out of the add-on, or give it up there",
			it.key, calls.CutText(field), w.managerOf(owners[field])))
		return false
	}
	how.force = true
	return true
}

func isCreateOnly(object *unstructured.Unstructured) bool {
	return object.GetAnnotations()[kubermaticv1.AnnotationUpdate] == updateCreateOnly
}

// replicasOf are those of an object as rendered; nil where it has none.
func replicasOf(object *unstructured.Unstructured) *int64 {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "replicas")
	switch typed := value.(type) {
	case int64:
		return &typed
	case float64:
		return new(int64(typed))
	}
	return nil
}

// changesReplicas says whether the add-on has other replicas than those that were applied last, as far as that is known.
func (i *item) changesReplicas() bool {
	before, now := i.entry.Replicas, i.wanted.Replicas
	return i.entry.Applied && now != nil && (before == nil || *before != *now)
}

// unusedVersion is a resource version that no object has: etcd's first write is its second revision. The API server creates what
// is applied with it where there is nothing (it wipes the version), and answers Conflict where there is something (Update in
// k8s.io/apiserver/pkg/registry/generic/registry/store.go).
const unusedVersion = "1"

// create applies an object in one call if there is none of its name. Where there is one, nothing is written and settled is false:
// the caller reads it then, to see whose it is. Left to the caller are kinds that may be served by somebody else's code, which may
// not look at resource versions; what is to be adopted, which exists; and Namespaces, which mostly do: a webhook that is down
// would hold up the use of one.
func (w *writer) create(ctx context.Context, client calls.Client, it *item) (settled bool, err error) {
	if w.Adopt || calls.IsNamespace(it.object) || !scheme.Scheme.Recognizes(it.object.GroupVersionKind()) {
		return false, nil
	}
	live, err := w.send(ctx, client, it, attempt{ifNew: true})
	if apierrors.IsConflict(err) {
		return false, nil
	}
	if err != nil {
		_, err := w.explain(ctx, client, it, err, &attempt{}) // without ifNew: it is not the version that is refused
		return true, err
	}
	it.entry.Created = true
	w.accept(it, live)
	return true, nil
}
