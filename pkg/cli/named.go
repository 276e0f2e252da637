package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// named is a client whose refusals for lack of rights name verb, resource and namespace in one line.
type named struct{ client.WithWatch }

func (n named) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return lacking("get", key.Namespace, n.WithWatch.Get(ctx, key, object, options...))
}

func (n named) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return lacking("list", namespaceOf(options), n.WithWatch.List(ctx, list, options...))
}

func (n named) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	found, err := n.WithWatch.Watch(ctx, list, options...)
	return found, lacking("watch", namespaceOf(options), err)
}

func (n named) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	return lacking("create", object.GetNamespace(), n.WithWatch.Create(ctx, object, options...))
}

func (n named) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	return lacking("update", object.GetNamespace(), n.WithWatch.Update(ctx, object, options...))
}

func (n named) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	return lacking("patch", object.GetNamespace(), n.WithWatch.Patch(ctx, object, patch, options...))
}

func (n named) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	return lacking("delete", object.GetNamespace(), n.WithWatch.Delete(ctx, object, options...))
}

func namespaceOf(options []client.ListOption) string {
	return (&client.ListOptions{}).ApplyOptions(options).Namespace
}

// lacking turns a refusal by RBAC into an error that names the right. Refusals of admission stay as they are.
func lacking(verb, namespace string, err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsForbidden(err) || status.Status().Details == nil {
		return err
	}
	about := status.Status().Details
	if !isByRights(status.Status(), verb) {
		return &Error{Code: ExitRefused, Err: err}
	}
	resource := about.Kind
	if about.Group != "" {
		resource += "." + about.Group
	}
	place := "in all namespaces"
	if namespace != "" {
		place = fmt.Sprintf("in namespace %q", namespace)
	}
	return Fail(ExitForbidden, "ask an admin of the seed for it, or choose a namespace or cluster of yours",
		"you lack the right to %s %s %s", verb, resource, place)
}

// isByRights distinguishes a refusal for lack of rights, whose text the API server writes, from one by admission.
func isByRights(status metav1.Status, verb string) bool {
	return strings.Contains(status.Message, fmt.Sprintf("cannot %s resource %q", verb, status.Details.Kind))
}
