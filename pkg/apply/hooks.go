package apply

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// Hook is an object outside of every inventory that is made to do its work once: it is never repaired and never pruned.
type Hook struct {
	// Object is prepared.
	Object *unstructured.Unstructured
	// Run tells one attempt from all others; it is written on the object.
	Run string
	// TargetNamespace is for an object whose scope Prepare could not know.
	TargetNamespace string
	// Release is what the object belongs to.
	Release ownership.HelmMarks
}

// NoPlaceError says that there is nowhere to make a hook's object: its namespace does not exist or goes, or its kind is not
// served. Whatever the object was to do there is gone as well, or never was.
type NoPlaceError struct{ Problem string }

func (e *NoPlaceError) Error() string { return e.Problem }

// Key names the hook's object.
func (h Hook) Key() ownership.Key { return ownership.KeyOf(h.Object) }

// Runs says whether the object is of a kind that runs to an end.
func (h Hook) Runs() bool { return calls.Runs(h.Key().GroupKind()) }

// HoldsMore says whether the object is never deleted for a hook, since it holds data, or what others keep in it or by it.
func (h Hook) HoldsMore() bool { return h.IsShared() || h.Key().GroupKind() == calls.ClaimGK }

// IsShared says whether the object is used by all as soon as it is there, whoever made it.
func (h Hook) IsShared() bool { return h.Key().IsFoundation() }

// client is for the hook's object at its place, with its namespace filled in. A kind that is not served is a NoPlaceError.
func (h *Hook) client(target calls.Target) (dynamic.ResourceInterface, calls.Place, error) {
	where, served, err := (&calls.Kinds{Mapper: target.Mapper}).Find(h.Object.GroupVersionKind())
	if err != nil {
		return nil, calls.Place{}, fmt.Errorf("looking up the kind of %q: %w", h.Key(), err)
	}
	if !served {
		return nil, calls.Place{}, &NoPlaceError{fmt.Sprintf("the user cluster does not serve %s", h.Object.GroupVersionKind().GroupVersion())}
	}
	resources := target.Dynamic.Resource(where.GroupVersionResource)
	if !where.Namespaced {
		return resources, calls.Place{Name: h.Object.GetName()}, nil
	}
	if h.Object.GetNamespace() == "" {
		h.Object = h.Object.DeepCopy()
		h.Object.SetNamespace(h.TargetNamespace)
	}
	at := calls.Place{Namespace: h.Object.GetNamespace(), Name: h.Object.GetName()}
	return resources.Namespace(at.Namespace), at, nil
}

// MakeHook makes a hook's object. Where one exists it is left as it is, and the UID is empty: look at it again. Refused says
// why the user cluster does not want it. Errors: NoPlaceError, or the API server's.
func MakeHook(ctx context.Context, target calls.Target, owner ownership.Owner, hook Hook) (uid types.UID, refused string, err error) {
	client, at, err := hook.client(target)
	if err != nil {
		return "", "", err
	}
	object := hook.marked()
	live, err := client.Create(ctx, object, metav1.CreateOptions{FieldManager: owner.FieldManager()})
	if err == nil {
		err = at.Check(live)
	}
	switch {
	case err == nil:
		return live.GetUID(), "", nil
	case apierrors.IsAlreadyExists(err):
		return "", "", nil
	case calls.IsNamespaceMissing(err):
		return "", "", &NoPlaceError{calls.MissingNamespace(object.GetNamespace())}
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return "", "", &NoPlaceError{fmt.Sprintf("namespace %q is being deleted", object.GetNamespace())}
	case apierrors.IsNotFound(err) || calls.IsRefusal(err) || calls.IsUnexplained(err) && isHookToBlame(ctx, client, object):
		return "", "the user cluster refuses it: " + calls.ProblemOf(object, err), nil
	}
	return "", "", fmt.Errorf("making hook %q: %w", hook.Key(), calls.Masked(object, err))
}

// isHookToBlame asks, without writing, whether the API server has something against a hook's object.
func isHookToBlame(ctx context.Context, client dynamic.ResourceInterface, object *unstructured.Unstructured) bool {
	_, err := client.Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if !calls.IsUnexplained(err) {
		return calls.IsRefusal(err)
	}
	_, err = client.Get(ctx, object.GetName(), metav1.GetOptions{})
	return calls.IsReadable(err)
}

// marked is the object as it is made. A Job does not go by itself: its end is to be seen, and delete policies say when it goes.
func (h Hook) marked() *unstructured.Unstructured {
	object := h.Object.DeepCopy()
	if h.Key().GroupKind() == calls.JobGK {
		unstructured.RemoveNestedField(object.Object, "spec", "ttlSecondsAfterFinished")
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[kubermaticv1.AnnotationHookRun] = h.Run
	object.SetAnnotations(annotations)
	return object
}

// DropHook deletes the very object. A Job goes after its Pods, so that no two attempts ever run beside each other; what belongs to
// other objects goes in the background.
func DropHook(ctx context.Context, target calls.Target, hook Hook, uid types.UID) error {
	client, _, err := hook.client(target)
	if err != nil {
		return err
	}
	propagation := metav1.DeletePropagationBackground
	if hook.Key().GroupKind() == calls.JobGK {
		propagation = metav1.DeletePropagationForeground
	}
	err = client.Delete(ctx, hook.Object.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &propagation,
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("deleting hook %q: %w", hook.Key(), calls.Masked(hook.Object, err))
}
