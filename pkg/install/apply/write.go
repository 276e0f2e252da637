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
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/fieldsets"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// patchTries: plain, with the new UID, without replicas, with force, with moved versions, without surplus, and one for a race.
const patchTries = 7

type writer struct {
	RolloutOptions
	owner  ownership.Owner
	target calls.Target
	kinds  *calls.Kinds
	now    time.Time
	shared map[ownership.Key]ownership.Entry

	lock  sync.Mutex
	asked bool
	found []ownership.Sibling
	// searching allows one search for refused fields at a time; runs counts their dry runs.
	searching sync.Mutex
	runs      int
}

type attempt struct {
	// force takes fields of other managers; withoutReplicas leaves spec.replicas to an autoscaler.
	force, withoutReplicas bool
	// withoutNulls leaves out fields with null values.
	withoutNulls bool
	recreated    bool
	// moved: its managed fields are of the version that is written. surplus: the fields refused together with it were
	// searched.
	moved, surplus bool
	// version is the resource version that the patch is valid for; "" for any.
	version string
	ifNew   bool
	dryRun  bool
}

// write applies one object. The item is then done, or has a note; an error is a failed call.
func (w *writer) write(ctx context.Context, it *item) error {
	client, served, err := w.client(it)
	if err != nil || !served {
		return err
	}
	if decided, err := w.leaveToSibling(ctx, it); err != nil || decided {
		return err
	}
	if it.unchanged {
		it.done = true
		return nil
	}
	if it.entry.UID == "" {
		if decided, err := w.create(ctx, client, it); err != nil || decided {
			return err
		}
		if err := w.readExisting(ctx, client, it); err != nil || it.done || it.note != nil {
			return err
		}
	}
	if it.isWrittenOnce() {
		it.done = true
		return nil
	}
	return w.patch(ctx, client, it, attempt{})
}

func (i *item) isWrittenOnce() bool {
	return i.entry.UID != "" && (isCreateOnly(i.object) || i.entry.Finished && i.entry.Content == i.wanted.Content)
}

func (w *writer) client(it *item) (client calls.Client, served bool, err error) {
	where, served, err := w.kinds.Find(it.object.GroupVersionKind())
	if err != nil {
		return calls.Client{}, false, fmt.Errorf("looking up the kind of %q: %w", it.key, err)
	}
	if !served {
		it.refuse(kubermaticv1.ReasonKindNotServed, fmt.Sprintf("%s: %s", it.key, calls.Unserved(w.target.Served, it.object.GroupVersionKind())))
		return calls.Client{}, false, nil
	}
	return calls.ClientOf(w.target, where, it.object.GetNamespace()), true, nil
}

// patch sends the object until it is accepted, or no conflict can be resolved.
func (w *writer) patch(ctx context.Context, client calls.Client, it *item, how attempt) error {
	err := w.leaveScaled(ctx, client, it, &how)
	if err != nil {
		return err
	}
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
	return fmt.Errorf("applying %q: other clients change it at the same time: %w", it.key, calls.Masked(it.object, err))
}

func (w *writer) send(ctx context.Context, client calls.Client, it *item, how attempt) (*metav1.PartialObjectMetadata, error) {
	body, err := patchBody(it, how).MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding %q: %w", it.key, err)
	}
	it.sent = len(body)
	options := metav1.PatchOptions{
		FieldManager: w.owner.FieldManager(), Force: &how.force,
		FieldValidation: metav1.FieldValidationIgnore, // the default makes warnings, which are not read here
	}
	if how.dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return client.Patch(ctx, it.key.Name, types.ApplyPatchType, body, options)
}

// patchBody sets the known UID. A new object has a version that no object has.
func patchBody(it *item, how attempt) *unstructured.Unstructured {
	if it.entry.UID == "" && !how.withoutReplicas && !how.ifNew && it.wanted.TTL == nil {
		return it.object
	}
	body := it.object.DeepCopy()
	if it.wanted.TTL != nil {
		unstructured.RemoveNestedField(body.Object, ttlPath...)
	}
	if body.SetResourceVersion(how.version); how.ifNew {
		body.SetResourceVersion(unusedVersion)
	}
	if it.entry.UID != "" {
		body.SetUID(it.entry.UID)
	}
	if how.withoutReplicas {
		unstructured.RemoveNestedField(body.Object, "spec", "replicas")
	}
	if how.withoutNulls {
		dropNulls(body.Object)
	}
	return body
}

// dropNulls removes fields with null values: server-side apply would own them, and leave the live values.
func dropNulls(fields map[string]any) {
	for name, value := range fields {
		switch below := value.(type) {
		case nil:
			delete(fields, name)
		case map[string]any:
			dropNulls(below)
		}
	}
}

// accept records the answer: the object is ours now. Impossible fields are not recorded, so that an API server can't
// make records grow; then drift shows only in the object's existence.
func (w *writer) accept(it *item, live *metav1.PartialObjectMetadata) {
	it.written++
	before := it.entry
	it.entry, it.planned = it.wanted, true
	it.entry.UID, it.entry.Created = live.UID, before.Created
	it.entry.Finished = before.Finished && before.UID == live.UID // a change does not run an ended Job again
	if !isCreateOnly(it.object) {
		fields, at, ok := fieldsets.Believable(live.ManagedFields, w.owner.FieldManager(), it.sent)
		it.entry.Fields, it.entry.WrittenAt, it.untrue = fields, at, !ok
	}
	it.entry.Applied = !it.untrue
	if live.DeletionTimestamp != nil {
		w.awaitEnd(it, live)
		return
	}
	it.done = true
}

func (w *writer) awaitEnd(it *item, live *metav1.PartialObjectMetadata) {
	reason := kubermaticv1.ReasonWaitingForStage
	if calls.IsNamespace(it.object) {
		reason = kubermaticv1.ReasonNamespaceTerminating
	}
	it.waitForEnd(reason, live.Finalizers)
}

func (w *writer) resolveConflict(ctx context.Context, client calls.Client, it *item, cause error, how *attempt) (again bool, err error) {
	if how.version = ""; apierrors.IsConflict(cause) {
		how.surplus = false
	}
	fields := calls.ConflictingFields(cause)
	if len(fields) == 0 && !isUIDMismatch(cause) {
		return w.explain(ctx, client, it, cause, how)
	}
	live, err := client.Read(ctx, it.key)
	if err != nil {
		return false, err
	}
	if live == nil && it.isWrittenOnce() { // it ended, and was deleted in the meantime
		it.done = true
		return false, nil
	}
	if live == nil {
		it.entry.UID, it.entry.Fields, it.entry.WrittenAt, it.entry.Created, it.gone = "", nil, 0, true, true
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

// resolveFields decides about fields of others. Replicas stay with their scaler, unless the add-on changed them;
// fields recorded as ours are forced; all others are refused.
func (w *writer) resolveFields(it *item, live *metav1.PartialObjectMetadata, fields []string, how *attempt) bool {
	if calls.IsNamespace(it.object) && it.entry.UID == "" {
		it.done, it.used = true, true // created since it was read
		return false
	}
	scaling := fieldsets.ScalingOf(live.ManagedFields, w.owner.FieldManager())
	if scaling.IsOf(it.key.GroupKind()) && slices.Contains(fields, fieldsets.ReplicasPath) {
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
		if w.Adopt && !w.isInstallation(owners[field]) || w.target.DryRun && it.inherits {
			continue
		}
		it.refuse(kubermaticv1.ReasonConflict, fmt.Sprintf("%s: field %s belongs to %s: remove it from this add-on or from the other owner",
			it.key, calls.CutText(field), w.managerOf(owners[field])))
		return false
	}
	how.force = true
	return true
}

func isCreateOnly(object *unstructured.Unstructured) bool {
	return object.GetAnnotations()[kubermaticv1.AnnotationUpdate] == updateCreateOnly
}

// unusedVersion is a resource version that no object has: etcd's first write is its second revision. With it, the API
// server creates a missing object (it clears the version), and answers Conflict for an existing one (Update in
// k8s.io/apiserver/pkg/registry/generic/registry/store.go).
const unusedVersion = "1"

// create applies an object in one call if none has its name; otherwise decided is false, and the caller reads it. The
// caller also handles kinds whose server may ignore resource versions, objects to adopt, and existing Namespaces,
// whose use no webhook must block.
func (w *writer) create(ctx context.Context, client calls.Client, it *item) (decided bool, err error) {
	if w.Adopt || calls.IsNamespace(it.object) || !scheme.Scheme.Recognizes(it.object.GroupVersionKind()) {
		return false, nil
	}
	live, err := w.send(ctx, client, it, attempt{ifNew: true})
	if apierrors.IsConflict(err) {
		return false, nil
	}
	if err != nil {
		_, err := w.explain(ctx, client, it, err, &attempt{}) // without ifNew: the version does not cause the refusal
		return true, err
	}
	it.entry.Created = true
	w.accept(it, live)
	return true, nil
}
