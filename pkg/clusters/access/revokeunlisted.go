package access

import (
	"context"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/access/rights"
)

// WithoutHub is the problem of a credential if the platform has no hub for agents.
func WithoutHub() *Problem {
	return &Problem{
		Reason: v1.ReasonHubUnknown, IsLasting: true,
		Message: "the version requests credentials for the hub, and this seed issues none: set --hub-server and --hub-ca-file of its manager " +
			"(the chart sets them with agents.enabled)",
	}
}

// RevokeUnlisted removes an installation's bindings whose roles exceed the platform's list, and ends credentials issued before
// the present value of annotation rotate-at; Keep issues new ones. It works from the cache, so it needs neither the user
// cluster nor the version, and makes no call if there is nothing to revoke.
func (k *Keeper) RevokeUnlisted(ctx context.Context, installation types.NamespacedName, rotateAt string) error {
	if err := k.withdrawUnlisted(ctx, installation); err != nil || rotateAt == "" {
		return err
	}
	return k.endPrevious(ctx, installation, rotateAt)
}

func (k *Keeper) withdrawUnlisted(ctx context.Context, of types.NamespacedName) error {
	roles := &rbacv1.RoleList{}
	if err := k.held.List(ctx, roles, client.InNamespace(of.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the roles of agents: %w", err)
	}
	for i := range roles.Items {
		role := &roles.Items[i]
		isNamed := strings.HasPrefix(role.Name, rights.AgentName(of.Name, "")) // another name is no agent's
		if !isNamed || role.Annotations[v1.AnnotationAccessOf] != of.Name {
			continue
		}
		listed, _, err := k.listed(ctx, role.Annotations[v1.LabelAgents] == v1.AgentsCore)
		if err != nil {
			return err
		}
		if rights.Uncovered(role.Rules, listed) == "" {
			continue
		}
		if err := k.unbind(ctx, of, role.Name); err != nil {
			return err
		}
	}
	return nil
}

// endPrevious ends credentials issued before a value of annotation rotate-at.
func (k *Keeper) endPrevious(ctx context.Context, of types.NamespacedName, rotateAt string) error {
	secrets := secretMetas()
	if err := k.held.List(ctx, secrets, client.InNamespace(of.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the credentials of agents: %w", err)
	}
	isPrevious := func(secret metav1.Object) bool {
		annotations := secret.GetAnnotations()
		return annotations[v1.AnnotationAccessOf] == of.Name && annotations[v1.AnnotationRotateAt] != rotateAt
	}
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		credential, isStored := strings.CutPrefix(secret.Name, rights.StoredName(secret.Labels[v1.LabelAccess], ""))
		if !isStored || !isPrevious(secret) {
			continue
		}
		if err := k.unbind(ctx, of, rights.AgentName(of.Name, credential)); err != nil {
			return err
		}
		if err := k.revokeStored(ctx, client.ObjectKeyFromObject(secret), isPrevious); err != nil {
			return err
		}
	}
	return nil
}
