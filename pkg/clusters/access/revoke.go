package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/access/certificate"
	"github.com/trellis-addons/trellis/pkg/clusters/access/rights"
)

// Revoke deletes the objects of these credentials: binding, account, role, outbox, request, and the Secret last, so that a process
// that ends in between finds the rest. The outbox stays while another credential of the installation uses it.
func (k *Keeper) Revoke(ctx context.Context, holder Holder, names ...string) error {
	namespace, of := holder.Cluster.Namespace, holder.marks()
	var failures []error
	for _, name := range names {
		agent := rights.AgentName(holder.Installation, name)
		failures = append(failures, k.revoke(ctx, of, []client.Object{
			&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: agent}},
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: agent}},
			&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: agent}},
		}))
	}
	if err := errors.Join(failures...); err != nil || len(names) == 0 {
		return err
	}
	isUsed, err := k.isOutboxUsed(ctx, holder, names)
	if err != nil {
		return err
	}
	if !isUsed {
		failures = append(failures, k.revokeOutbox(ctx, namespace, holder.Installation, of.mayRemove))
	}
	for _, name := range names {
		stored := client.ObjectKey{Namespace: namespace, Name: rights.StoredName(of.id, name)}
		failures = append(failures, k.revokeStored(ctx, stored, of.mayRemove))
	}
	return errors.Join(failures...)
}

// mayRemove says whether an object is ours, or belonged to a previous Cluster.
func (m marks) mayRemove(object metav1.Object) bool { return m.whose(object) != anothers }

// revoke deletes these objects, in order, except those of other owners.
func (k *Keeper) revoke(ctx context.Context, of marks, objects []client.Object) error {
	for _, object := range objects {
		err := k.direct.Get(ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return failed(err, "reading %q", object.GetName())
		}
		if !of.mayRemove(object) {
			continue
		}
		if err := k.remove(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// isOutboxUsed says whether a role of another credential of the installation names its outbox. It reads past the cache, which may
// still have a role that was just deleted.
func (k *Keeper) isOutboxUsed(ctx context.Context, holder Holder, except []string) (bool, error) {
	roles := &rbacv1.RoleList{}
	err := k.direct.List(ctx, roles, client.InNamespace(holder.Cluster.Namespace), client.MatchingLabels{v1.LabelAccess: holder.Owner.ID()})
	if err != nil {
		return false, failed(err, "listing the roles of agents")
	}
	outbox := rights.OutboxName(holder.Installation)
	return slices.ContainsFunc(roles.Items, func(role rbacv1.Role) bool {
		isExcepted := slices.ContainsFunc(except, func(name string) bool { return rights.AgentName(holder.Installation, name) == role.Name })
		return !isExcepted && slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Contains(rule.Resources, "secrets") && slices.Contains(rule.ResourceNames, outbox)
		})
	}), nil
}

// revokeOutbox deletes the outbox without reading its content. Its type is immutable, so an outbox of another type was never ours; a
// policy of the chart lets no manager delete that.
func (k *Keeper) revokeOutbox(ctx context.Context, namespace, installation string, may func(metav1.Object) bool) error {
	found, name := secretMetas(), rights.OutboxName(installation)
	of := client.MatchingFields{"metadata.name": name, "type": string(corev1.SecretTypeOpaque)}
	if err := k.direct.List(ctx, found, client.InNamespace(namespace), of); err != nil {
		return failed(err, "looking for Secret %q", name)
	}
	for at := range found.Items {
		if one := &found.Items[at]; may(one) {
			return k.remove(ctx, one)
		}
	}
	return nil
}

// revokeStored deletes a Secret, after the request for its key.
func (k *Keeper) revokeStored(ctx context.Context, name client.ObjectKey, may func(metav1.Object) bool) error {
	secret := &corev1.Secret{}
	err := k.direct.Get(ctx, name, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return failed(err, "reading Secret %q", name.Name)
	}
	if !may(secret) || secret.Type != typeStored {
		return nil
	}
	if key := secret.Data[keyNext]; len(key) > 0 {
		if err := k.revokeRequest(ctx, secret.Labels[v1.LabelAccess], key); err != nil {
			return err
		}
	}
	return k.remove(ctx, secret)
}

// revokeRequest deletes the request for a key, if it is ours. A manager without the right leaves it to the API server, which deletes old
// ones.
func (k *Keeper) revokeRequest(ctx context.Context, id string, key []byte) error {
	live, name := &request{}, requestName(id, key)
	if name == "" {
		return nil
	}
	err := k.direct.Get(ctx, client.ObjectKey{Name: name}, live)
	if err == nil && live.Labels[v1.LabelAccess] == id {
		err = k.remove(ctx, live)
	}
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	return failed(err, "removing %s %q", kindRequest, name)
}

// requestName is "" for an invalid key.
func requestName(id string, key []byte) string {
	_, public, err := certificate.Request(key, id, nil)
	if err != nil {
		return ""
	}
	return rights.RequestName(id, public)
}

// RevokeAll deletes all cached objects of an installation, whose Cluster may no longer exist, except those of other owners. It makes no
// call if there are none.
func (k *Keeper) RevokeAll(ctx context.Context, namespace, installation string) error {
	secrets, bindings, accounts, roles := secretMetas(), &rbacv1.RoleBindingList{}, &corev1.ServiceAccountList{}, &rbacv1.RoleList{}
	for _, list := range []client.ObjectList{bindings, accounts, roles, secrets} {
		if err := k.held.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing the credentials of agents: %w", err)
		}
	}
	agent := rights.AgentName(installation, "")
	going := slices.Concat(
		heldOf(bindings.Items, installation, agent), heldOf(accounts.Items, installation, agent), heldOf(roles.Items, installation, agent),
	)
	var failures []error
	for _, one := range going {
		failures = append(failures, k.remove(ctx, one))
	}
	mayGo := func(secret metav1.Object) bool { return secret.GetAnnotations()[v1.AnnotationAccessOf] == installation }
	for _, one := range heldOf(secrets.Items, installation, "") {
		switch name := one.GetName(); {
		case name == rights.OutboxName(installation):
			failures = append(failures, k.revokeOutbox(ctx, namespace, installation, mayGo))
		case strings.HasPrefix(name, rights.StoredPrefix):
			failures = append(failures, k.revokeStored(ctx, client.ObjectKeyFromObject(one), mayGo))
		}
	}
	return errors.Join(failures...)
}

// heldOf returns the cached objects of an installation that have our name prefix.
func heldOf[T any, P interface {
	*T
	client.Object
}](items []T, installation, prefix string) []client.Object {
	var found []client.Object
	for at := range items {
		if one := P(&items[at]); one.GetAnnotations()[v1.AnnotationAccessOf] == installation && strings.HasPrefix(one.GetName(), prefix) {
			found = append(found, one)
		}
	}
	return found
}

// unbind deletes an installation's binding of this name, if the cache has one.
func (k *Keeper) unbind(ctx context.Context, of client.ObjectKey, name string) error {
	binding := &rbacv1.RoleBinding{}
	err := k.held.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: name}, binding)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return failed(err, "looking for RoleBinding %q in the cache", name)
	}
	if binding.Annotations[v1.AnnotationAccessOf] != of.Name {
		return nil
	}
	return k.remove(ctx, binding)
}

// remove deletes exactly the object that was checked.
func (k *Keeper) remove(ctx context.Context, object client.Object) error {
	uid := object.GetUID()
	going, kind := bare(object)
	err := k.writer.Delete(ctx, going, client.Preconditions{UID: &uid})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return failed(err, "deleting %s %q", kind, object.GetName())
}

// bare is an object with its name only. Of Secrets only the metadata may be known.
func bare(object client.Object) (going client.Object, kind string) {
	about := metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}
	switch object.(type) {
	case *rbacv1.RoleBinding:
		return &rbacv1.RoleBinding{ObjectMeta: about}, kindBinding
	case *corev1.ServiceAccount:
		return &corev1.ServiceAccount{ObjectMeta: about}, kindAccount
	case *rbacv1.Role:
		return &rbacv1.Role{ObjectMeta: about}, kindRole
	case *certificatesv1.CertificateSigningRequest:
		return &certificatesv1.CertificateSigningRequest{ObjectMeta: about}, kindRequest
	}
	return &corev1.Secret{ObjectMeta: about}, kindSecret
}
