package apply

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

var neverRecreated = []schema.GroupKind{ownership.NamespaceGK, ownership.DefinitionGK, calls.ClaimGK}

func isUIDMismatch(err error) bool {
	if apierrors.IsConflict(err) {
		return true
	}
	return apierrors.IsInvalid(err) && slices.ContainsFunc(calls.CausesOf(err), func(cause metav1.StatusCause) bool {
		return cause.Field == "metadata.uid"
	})
}

// explain turns a refusal into a note, or an error. Again: the object was changed or deleted, and must be sent once
// more.
func (w *writer) explain(ctx context.Context, client calls.Client, it *item, cause error, how *attempt) (again bool, err error) {
	if again, err = w.mend(ctx, client, it, cause, how); err != nil || again || it.note != nil || it.done {
		return again, err
	}
	switch {
	case apierrors.HasStatusCause(cause, corev1.NamespaceTerminatingCause):
		it.wait(kubermaticv1.ReasonNamespaceTerminating, fmt.Sprintf(
			"namespace %q is being deleted: %s is not written until the namespace is deleted", it.key.Namespace, it.key))
	case calls.IsNamespaceMissing(cause):
		it.wait(kubermaticv1.ReasonNamespaceMissing, calls.MissingNamespace(it.key.Namespace))
	case apierrors.IsNotFound(cause):
		w.explainNotFound(it)
	case apierrors.IsInvalid(cause) && it.entry.UID != "" && w.wouldBeCreated(ctx, client, it):
		return w.replace(ctx, client, it, cause, how)
	case calls.IsRefusal(cause) || calls.IsUnexplained(cause) && w.isAtFault(ctx, client, it, *how):
		it.refuse(kubermaticv1.ReasonObjectInvalid, fmt.Sprintf("the user cluster refuses %s: %s", it.key, calls.ProblemOf(it.object, cause)))
		it.note.Cause = calls.CauseOf(cause)
	default:
		return false, fmt.Errorf("applying %q: %w", it.key, calls.Masked(it.object, cause))
	}
	return false, nil
}

// mend tries each remedy for a refused write of an existing object once. With dry runs a remedy has no effect, so the object is done: the
// write can't be tried after it.
func (w *writer) mend(ctx context.Context, client calls.Client, it *item, cause error, how *attempt) (again bool, err error) {
	switch {
	case it.entry.UID == "":
	case calls.IsUnexplained(cause) && !how.moved:
		how.moved = true
		again, err = moveVersions(ctx, client, it)
	case apierrors.IsInvalid(cause) && !how.surplus:
		how.surplus = true
		again, err = w.takeSurplus(ctx, client, it, cause, how)
	}
	it.done = again && w.target.DryRun
	return again && !it.done, err
}

// explainNotFound: our definition may be new; otherwise the kind is no longer served.
func (w *writer) explainNotFound(it *item) {
	if _, own := w.kinds.Declared[it.object.GroupVersionKind()]; own {
		it.wait(kubermaticv1.ReasonWaitingForStage, fmt.Sprintf("%s waits until its kind is served", it.key))
		return
	}
	w.kinds.Reset()
	it.refuse(kubermaticv1.ReasonKindNotServed, fmt.Sprintf("%s: the user cluster no longer serves this kind, or stores no objects "+
		"of it, as with SubjectAccessReview: remove the object from the add-on", it.key))
}

// isAtFault tests with a dry run whether the object causes the error, or the server, such as its etcd.
func (w *writer) isAtFault(ctx context.Context, client calls.Client, it *item, how attempt) bool {
	how.dryRun = true
	_, err := w.send(ctx, client, it, how)
	if !calls.IsUnexplained(err) {
		return calls.IsRefusal(err)
	}
	_, err = client.Get(ctx, it.key.Name, metav1.GetOptions{})
	return calls.IsReadable(err)
}

// wouldBeCreated tests with a dry run whether the API server accepts the same content as a new
// object: then the refused change is of an immutable field. An error proves nothing.
func (w *writer) wouldBeCreated(ctx context.Context, client calls.Client, it *item) bool {
	probe := w.probeOf(it.object)
	body, err := probe.MarshalJSON()
	if err != nil {
		return false
	}
	_, err = client.Patch(ctx, probe.GetName(), types.ApplyPatchType, body, metav1.PatchOptions{
		FieldManager: w.owner.FieldManager(), DryRun: []string{metav1.DryRunAll},
	})
	return err == nil
}

// probeOf is the object under an unused name. A definition's name depends on the kind that it defines.
func (w *writer) probeOf(object *unstructured.Unstructured) *unstructured.Unstructured {
	probe, name := object.DeepCopy(), "trellis-probe-"+w.owner.ID()
	if calls.IsCRD(object) {
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		if unstructured.SetNestedField(probe.Object, name, "spec", "names", "plural") == nil {
			name += "." + group
		}
	}
	probe.SetName(name)
	return probe
}

func (w *writer) replace(ctx context.Context, client calls.Client, it *item, cause error, how *attempt) (again bool, err error) {
	wanted := it.object.GetAnnotations()[kubermaticv1.AnnotationUpdate] == updateRecreate
	never := slices.Contains(neverRecreated, it.key.GroupKind())
	switch {
	case never || !wanted:
		reason, wayOut := kubermaticv1.ReasonObjectInvalid, "undo the change"
		if calls.IsImmutable(cause) {
			reason = kubermaticv1.ReasonImmutableField
		}
		if !never {
			wayOut += fmt.Sprintf(", or have the object deleted and created again: annotate its manifest with %s: %s",
				kubermaticv1.AnnotationUpdate, updateRecreate)
		}
		it.refuse(reason, fmt.Sprintf("the user cluster refuses this change of %s, and would accept a new object: %s: %s",
			it.key, calls.ProblemOf(it.object, cause), wayOut))
		return false, nil
	case how.recreated:
		it.waitForEnd(kubermaticv1.ReasonWaitingForStage, nil)
		return false, nil
	}
	how.recreated = true
	if err := calls.DeleteObject(ctx, client, it.entry); err != nil {
		return false, err
	}
	it.done = w.target.DryRun // a new object would be accepted, and the old one is still there
	return !it.done, nil
}

func checkConflicts(it *item, fields []string) error {
	if have := nodes(it.object.Object); len(fields) > have {
		return calls.Misbehaves("its refusal of %s names %d fields, and %d were sent", it.key, len(fields), have)
	}
	return nil
}

func nodes(value any) (count int) {
	switch typed := value.(type) {
	case map[string]any:
		for _, inner := range typed {
			count += nodes(inner)
		}
	case []any:
		for _, inner := range typed {
			count += nodes(inner)
		}
	}
	return count + 1
}
