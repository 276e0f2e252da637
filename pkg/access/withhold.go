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
	"github.com/trellis-addons/trellis/pkg/access/rights"
)

// WithoutHub is the problem of a credential where the platform gives out none.
func WithoutHub() *Problem {
	return &Problem{
		Reason: v1.ReasonHubUnknown, IsLasting: true,
		Message: "the version asks for credentials for the hub, and this seed gives out none: its manager has to be told where agents " +
			"reach it (--hub-server and --hub-ca-file, which the chart sets with agents.enabled)",
	}
}

// Withhold takes the bindings of an installation away whose roles hold what the platform does not list any more, and
// ends what was issued before annotation rotate-at had its value; Keep makes that again. It goes by what is held, so that
// it needs neither the user cluster nor the version, and costs no call where nothing is to be taken away.
func (k *Keeper) Withhold(ctx context.Context, installation types.NamespacedName, rotateAt string) error {
	if err := k.withdrawUnlisted(ctx, installation); err != nil || rotateAt == "" {
		return err
	}
	return k.endFormer(ctx, installation, rotateAt)
}

func (k *Keeper) withdrawUnlisted(ctx context.Context, of types.NamespacedName) error {
	roles := &rbacv1.RoleList{}
	if err := k.held.List(ctx, roles, client.InNamespace(of.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the roles of agents: %w", err)
	}
	for i := range roles.Items {
		role := &roles.Items[i]
		isNamed := strings.HasPrefix(role.Name, rights.AgentName(of.Name, "")) // another name is of nobody's agent
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

// endFormer ends what was issued before a value of annotation rotate-at.
func (k *Keeper) endFormer(ctx context.Context, of types.NamespacedName, rotateAt string) error {
	secrets := secretMetas()
	if err := k.held.List(ctx, secrets, client.InNamespace(of.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the credentials of agents: %w", err)
	}
	isFormer := func(secret metav1.Object) bool {
		annotations := secret.GetAnnotations()
		return annotations[v1.AnnotationAccessOf] == of.Name && annotations[v1.AnnotationRotateAt] != rotateAt
	}
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		credential, isStored := strings.CutPrefix(secret.Name, rights.StoredName(secret.Labels[v1.LabelAccess], ""))
		if !isStored || !isFormer(secret) {
			continue
		}
		if err := k.unbind(ctx, of, rights.AgentName(of.Name, credential)); err != nil {
			return err
		}
		if err := k.revokeStored(ctx, client.ObjectKeyFromObject(secret), isFormer); err != nil {
			return err
		}
	}
	return nil
}
