package apply

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Hook is an object outside of every inventory that is made to do its work once: it is never repaired and never pruned.
type Hook struct {
	// Object is prepared.
	Object *unstructured.Unstructured
	// Run tells one attempt from all others; it is written on the object.
	Run string
	// TargetNamespace is for an object whose scope Prepare could not know.
	TargetNamespace string
}

// Sight is what a look at a hook's object finds.
type Sight struct {
	// UID is empty where there is no object.
	UID types.UID
	// Ours says that we made it, for whichever run; Run is for which.
	Ours bool
	Run  string
	// Made is when the API server got it, by its clock.
	Made time.Time
	// Deleting says that it goes, Working that a container of it runs now.
	Deleting, Working bool
	// Ended says that it did its work, Failed that it never will. Other kinds than Job and Pod do theirs by being there.
	Ended, Failed bool
	// Message for people, about what it waits for or why it failed.
	Message string
}

// Key names the hook's object.
func (h Hook) Key() Key { return keyOf(h.Object) }

// Runs says whether the object is of a kind that runs to an end.
func (h Hook) Runs() bool { return runs(h.Key().GroupKind()) }

func runs(kind schema.GroupKind) bool { return kind == jobGK || kind == podGK }

// StaysForOthers says whether the object is never deleted, since others live in it or by it.
func (h Hook) StaysForOthers() bool {
	kind := h.Key().GroupKind()
	return kind == definitionGK || kind == namespaceGK
}

// Vanishes says whether the object is deleted by the cluster once it has done its work.
func (h Hook) Vanishes() bool {
	_, found, _ := unstructured.NestedFieldNoCopy(h.Object.Object, "spec", "ttlSecondsAfterFinished")
	return found && h.Key().GroupKind() == jobGK
}

// client is for the hook's object, with its namespace filled in; nil where its kind is not served.
func (h *Hook) client(target Target) (dynamic.ResourceInterface, error) {
	where, served, err := (&kinds{mapper: target.Mapper}).find(h.Object.GroupVersionKind())
	if err != nil {
		return nil, fmt.Errorf("looking up the kind of %q: %w", h.Key(), err)
	}
	if !served {
		return nil, nil
	}
	resources := target.Dynamic.Resource(where.GroupVersionResource)
	if !where.namespaced {
		return resources, nil
	}
	if h.Object.GetNamespace() == "" {
		h.Object = h.Object.DeepCopy()
		h.Object.SetNamespace(h.TargetNamespace)
	}
	return resources.Namespace(h.Object.GetNamespace()), nil
}

// LookAtHook reads a hook's object.
func LookAtHook(ctx context.Context, target Target, owner Owner, hook Hook) (Sight, error) {
	client, err := hook.client(target)
	if err != nil || client == nil {
		return Sight{}, err
	}
	live, err := client.Get(ctx, hook.Object.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Sight{}, nil
	}
	if err != nil {
		return Sight{}, fmt.Errorf("reading hook %q: %w", hook.Key(), err)
	}
	return sightOf(live, owner), nil
}

func sightOf(live *unstructured.Unstructured, owner Owner) Sight {
	sight := Sight{
		UID: live.GetUID(), Ours: isOwnHook(live, owner), Run: live.GetAnnotations()[kubermaticv1.AnnotationHookRun],
		Made: live.GetCreationTimestamp().Time, Deleting: live.GetDeletionTimestamp() != nil,
	}
	kind := live.GroupVersionKind().GroupKind()
	switch {
	case sight.Deleting:
		sight.Message = "it is being deleted" + heldBy(live.GetFinalizers())
	case !runs(kind) || hasEnded(kind, live):
		sight.Ended = true
	default:
		sight.Failed, sight.Message = hasFailed(kind, live)
		sight.Working = isWorking(kind, live)
	}
	return sight
}

// isOwnHook says whether we made an object, or helm did by hand from what we told it: then it has our label.
func isOwnHook(live *unstructured.Unstructured, owner Owner) bool {
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == owner.FieldManager() {
			return true
		}
	}
	return live.GetLabels()[kubermaticv1.LabelInstallation] == owner.ID() && live.GetAnnotations()[helmHookAnnotation] != ""
}

// hasFailed says whether a Job or Pod failed for good, and why; or what it is at.
func hasFailed(kind schema.GroupKind, live *unstructured.Unstructured) (failed bool, message string) {
	if kind == podGK {
		phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
		reason, _, _ := unstructured.NestedString(live.Object, "status", "message")
		if phase == "Failed" {
			return true, "the Pod failed: " + cutText(reason)
		}
		return false, "the Pod is " + cutText(phase)
	}
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, condition := range conditions {
		fields, _ := condition.(map[string]any)
		if fields["type"] == "Failed" && fields["status"] == string(metav1.ConditionTrue) {
			reason, _ := fields["reason"].(string)
			said, _ := fields["message"].(string)
			return true, cutText(reason + ": " + said)
		}
	}
	return false, "it runs"
}

// isWorking says whether a container runs, as far as the API server knows. A Pod that can't be started is no work.
func isWorking(kind schema.GroupKind, live *unstructured.Unstructured) bool {
	if kind == podGK {
		phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
		return phase == "Running"
	}
	ready, _, _ := unstructured.NestedInt64(live.Object, "status", "ready")
	return ready > 0
}

// MakeHook makes a hook's object. Where one exists it is left as it is, and the UID is empty: look at it again. Refused says
// why the user cluster does not want it.
func MakeHook(ctx context.Context, target Target, owner Owner, hook Hook) (uid types.UID, refused string, err error) {
	client, err := hook.client(target)
	if err != nil {
		return "", "", err
	}
	if client == nil {
		return "", fmt.Sprintf("the user cluster does not serve %s", hook.Object.GroupVersionKind().GroupVersion()), nil
	}
	object := hook.Object.DeepCopy()
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[kubermaticv1.AnnotationHookRun] = hook.Run
	object.SetAnnotations(annotations)
	live, err := client.Create(ctx, object, metav1.CreateOptions{FieldManager: owner.FieldManager()})
	switch {
	case err == nil:
		return live.GetUID(), "", nil
	case apierrors.IsAlreadyExists(err):
		return "", "", nil
	case isNamespaceMissing(err):
		return "", missingNamespace(object.GetNamespace()), nil
	case apierrors.IsNotFound(err) || isRefusal(err):
		return "", "the user cluster refuses it: " + problemOf(&item{object: object, key: hook.Key()}, err), nil
	}
	return "", "", fmt.Errorf("making hook %q: %w", hook.Key(), err)
}

// DropHook deletes the very object, with what belongs to it in the background.
func DropHook(ctx context.Context, target Target, hook Hook, uid types.UID) error {
	client, err := hook.client(target)
	if err != nil || client == nil {
		return err
	}
	background := metav1.DeletePropagationBackground
	err = client.Delete(ctx, hook.Object.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background,
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("deleting hook %q: %w", hook.Key(), err)
}
