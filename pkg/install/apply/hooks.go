package apply

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// Hook is the object of a hook. It is in no inventory, and never repaired or pruned.
type Hook struct {
	Object *unstructured.Unstructured
	// Run identifies one attempt. It is written on the object.
	Run             string
	TargetNamespace string
	// Release is the Helm release; nil for go-template.
	Release *ownership.HelmMarks
}

// defaultAccount exists in every namespace.
const defaultAccount = "default"

var accounts = calls.Resource{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("serviceaccounts"), Namespaced: true}

// NoPlaceError says that a hook's object can't exist or run: its namespace, its kind or its account
// does not exist.
type NoPlaceError struct{ Problem string }

func (e *NoPlaceError) Error() string { return e.Problem }

// Key is the key of the hook's object.
func (h Hook) Key() ownership.Key { return ownership.KeyOf(h.Object) }

// Runs says whether the object is of a kind that runs to completion.
func (h Hook) Runs() bool { return calls.Runs(h.Key().GroupKind()) }

// HoldsMore says whether the object is never deleted for a hook: it contains data, or other objects.
func (h Hook) HoldsMore() bool { return h.IsShared() || h.Key().GroupKind() == calls.ClaimGK }

// IsShared says whether the whole cluster uses the object as soon as it exists.
func (h Hook) IsShared() bool { return h.Key().IsFoundation() }

func (h *Hook) client(target calls.Target) (dynamic.ResourceInterface, calls.Place, error) {
	where, served, err := (&calls.Kinds{Mapper: target.Mapper}).Find(h.Object.GroupVersionKind())
	if err != nil {
		return nil, calls.Place{}, fmt.Errorf("looking up the kind of %q: %w", h.Key(), err)
	}
	if !served {
		return nil, calls.Place{}, &NoPlaceError{calls.Unserved(target.Served, h.Object.GroupVersionKind())}
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

// CreateHook creates a hook's object. If one exists, nothing is written and the UID is empty. Refused is the user
// cluster's reason for refusing it. Errors: NoPlaceError, or the API server's.
func CreateHook(
	ctx context.Context, target calls.Target, owner ownership.Owner, hook Hook,
) (uid types.UID, refused calls.Refusal, err error) {
	client, at, err := hook.client(target)
	if err != nil {
		return "", refused, err
	}
	object := hook.marked()
	live, err := client.Create(ctx, object, metav1.CreateOptions{FieldManager: owner.FieldManager()})
	if err == nil {
		err = at.Check(live)
	}
	switch {
	case err == nil:
		return live.GetUID(), refused, nil
	case apierrors.IsAlreadyExists(err):
		return "", refused, nil
	case calls.IsNamespaceMissing(err):
		return "", refused, &NoPlaceError{calls.MissingNamespace(object.GetNamespace())}
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return "", refused, &NoPlaceError{fmt.Sprintf("namespace %q is being deleted", object.GetNamespace())}
	case apierrors.IsNotFound(err) || calls.IsRefusal(err) || calls.IsUnexplained(err) && isHookAtFault(ctx, client, object):
		return "", calls.Refusal{Text: "the user cluster refuses it: " + calls.ProblemOf(object, err), Cause: calls.CauseOf(err)}, nil
	}
	return "", refused, fmt.Errorf("creating hook %q: %w", hook.Key(), calls.Masked(object, err))
}

func isHookAtFault(ctx context.Context, client dynamic.ResourceInterface, object *unstructured.Unstructured) bool {
	_, err := client.Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if !calls.IsUnexplained(err) {
		return calls.IsRefusal(err)
	}
	_, err = client.Get(ctx, object.GetName(), metav1.GetOptions{})
	return calls.IsReadable(err)
}

// marked is the object to create. Its Job has no TTL: the end of the Job must be observed.
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

// DeleteHook deletes exactly this object. A Job is deleted after its Pods, so that two attempts never run at once.
// Dependents of other kinds are deleted in the background.
func DeleteHook(ctx context.Context, target calls.Target, hook Hook, uid types.UID) error {
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

// CheckAccount fails if the service account of a hook's Pod does not exist: without it a Pod is refused, and a Job
// waits for its Pod forever. Errors: NoPlaceError, or the API server's.
func CheckAccount(ctx context.Context, target calls.Target, hook Hook) error {
	name := hook.account()
	if !hook.Runs() || name == "" || name == defaultAccount {
		return nil
	}
	key := ownership.Key{Kind: "ServiceAccount", Namespace: cmp.Or(hook.Object.GetNamespace(), hook.TargetNamespace), Name: name}
	if calls.NameProblem(key) {
		return nil // the API server refuses it
	}
	found, err := calls.ClientOf(target, accounts, key.Namespace).Read(ctx, key)
	if err == nil && found == nil {
		return &NoPlaceError{fmt.Sprintf("its service account %q is not in namespace %q", name, key.Namespace)}
	}
	return err
}

// account is the name of the service account that a Job or Pod runs as, from its field or from the field's previous
// name (k8s.io/api/core/v1, PodSpec); "" is the namespace's default.
func (h Hook) account() string {
	path := []string{"spec"}
	if h.Key().GroupKind() == calls.JobGK {
		path = []string{"spec", "template", "spec"}
	}
	spec, _, _ := unstructured.NestedMap(h.Object.Object, path...)
	name, _, _ := unstructured.NestedString(spec, "serviceAccountName")
	previous, _, _ := unstructured.NestedString(spec, "serviceAccount")
	return cmp.Or(name, previous)
}
