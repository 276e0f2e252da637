package access

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// change is the write that an object of the seed needs.
type change int

const (
	none change = iota
	edit
	// replace: an immutable field is wrong.
	replace
)

// part is one of the objects that rights consist of.
type part struct {
	kind string
	// wanted is the intended object; held is the one in the cache, nil for none.
	wanted, held client.Object
	// needs checks everything except marks; put corrects that.
	needs func(live client.Object) change
	put   func(live client.Object)
}

func (v *visit) account(held *corev1.ServiceAccount) part {
	no := false
	wanted := &corev1.ServiceAccount{ObjectMeta: v.meta(v.agentName()), AutomountServiceAccountToken: &no}
	return part{
		kind: kindAccount, wanted: wanted, held: orNil(held),
		needs: func(live client.Object) change {
			if automount := live.(*corev1.ServiceAccount).AutomountServiceAccountToken; automount == nil || *automount {
				return edit
			}
			return none
		},
		put: func(live client.Object) { live.(*corev1.ServiceAccount).AutomountServiceAccountToken = &no },
	}
}

// role carries the label of the list that applies, for RevokeUnlisted.
func (v *visit) role(held *rbacv1.Role, rules []rbacv1.PolicyRule) part {
	list := v1.AgentsCustom
	if v.holder.Core {
		list = v1.AgentsCore
	}
	wanted := &rbacv1.Role{ObjectMeta: v.meta(v.agentName()), Rules: rules}
	wanted.Annotations[v1.LabelAgents] = list
	return part{
		kind: kindRole, wanted: wanted, held: orNil(held),
		needs: func(live client.Object) change {
			if role := live.(*rbacv1.Role); role.Annotations[v1.LabelAgents] != list || !apiequality.Semantic.DeepEqual(role.Rules, rules) {
				return edit
			}
			return none
		},
		put: func(live client.Object) {
			live.(*rbacv1.Role).Rules = rules
			live.GetAnnotations()[v1.LabelAgents] = list
		},
	}
}

func (v *visit) binding(held *rbacv1.RoleBinding, subject rbacv1.Subject) part {
	subjects := []rbacv1.Subject{subject}
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kindRole, Name: v.agentName()}
	return part{
		kind: kindBinding, wanted: &rbacv1.RoleBinding{ObjectMeta: v.meta(v.agentName()), RoleRef: role, Subjects: subjects}, held: orNil(held),
		needs: func(live client.Object) change {
			binding := live.(*rbacv1.RoleBinding)
			switch {
			case binding.RoleRef != role:
				return replace
			case !apiequality.Semantic.DeepEqual(binding.Subjects, subjects):
				return edit
			}
			return none
		},
		put: func(live client.Object) { live.(*rbacv1.RoleBinding).Subjects = subjects },
	}
}

// orNil keeps a nil pointer from becoming an interface that is not nil.
func orNil[T any, P interface {
	*T
	client.Object
}](object P) client.Object {
	if object == nil {
		return nil
	}
	return object
}

// settle makes an object match the wanted one. If the cached one is right, it counts: no call is made. Otherwise the object itself is
// read, since the cache may be behind.
func (v *visit) settle(ctx context.Context, p part) (client.Object, error) {
	if p.held != nil && v.marks.areOn(p.held) && p.held.GetDeletionTimestamp() == nil && p.needs(p.held) == none {
		v.memory.made[p.kind] = true
		return p.held, nil
	}
	if p.held == nil && !v.memory.made[p.kind] {
		made, err := v.create(ctx, p)
		if !apierrors.IsAlreadyExists(err) {
			return made, err
		}
	}
	live := p.wanted.DeepCopyObject().(client.Object)
	err := v.keeper.direct.Get(ctx, client.ObjectKeyFromObject(p.wanted), live)
	if apierrors.IsNotFound(err) {
		return v.create(ctx, p)
	}
	if err != nil {
		return nil, failed(err, "reading %s %q", p.kind, p.wanted.GetName())
	}
	return v.correct(ctx, p, live)
}

// correct changes an existing object to the wanted one, if it is ours.
func (v *visit) correct(ctx context.Context, p part, live client.Object) (client.Object, error) {
	of := v.marks.whose(live)
	switch {
	case of == anothers:
		return nil, nameTaken(p.kind, live.GetName())
	case live.GetDeletionTimestamp() != nil:
		return nil, isGoing(p.kind, live.GetName())
	case of == ofPrevious || p.needs(live) == replace:
		if err := v.keeper.remove(ctx, live); err != nil {
			return nil, err
		}
		return v.create(ctx, p)
	}
	v.memory.made[p.kind] = true
	if v.marks.areOn(live) && p.needs(live) == none {
		return live, nil
	}
	v.marks.put(live)
	p.put(live)
	if err := v.keeper.writer.Update(ctx, live); err != nil {
		return nil, v.refusedWrite(err, p.kind)
	}
	return live, nil
}

func (v *visit) create(ctx context.Context, p part) (client.Object, error) {
	made := p.wanted.DeepCopyObject().(client.Object)
	if err := v.keeper.writer.Create(ctx, made); err != nil {
		return nil, v.refusedWrite(err, p.kind)
	}
	v.memory.made[p.kind] = true
	return made, nil
}

// refusedWrite distinguishes a right that the manager can't grant from other failures. The API server compares with the manager's
// own rights, which may be a moment behind the platform's list.
func (v *visit) refusedWrite(err error, kind string) error {
	isRight := kind == kindRole || kind == kindBinding
	if isRight && apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return passing(v1.ReasonRightsRefused, "the manager may not grant the rights of access %q: it does not have all of them itself, or a "+
			"policy denies it", v.access.Name)
	}
	return failed(err, "writing %s %q", kind, v.agentName())
}

// keepOutbox creates the outbox once, empty. From then on it belongs to the agent: its content is never read.
func (v *visit) keepOutbox(ctx context.Context, held *meta) error {
	if held != nil && v.marks.whose(held) == ours {
		return nil
	}
	name := v.outboxName()
	secret := &corev1.Secret{ObjectMeta: v.meta(name), Type: corev1.SecretTypeOpaque}
	if !v.memory.made[kindOutbox] && held == nil {
		if err := v.keeper.writer.Create(ctx, secret); !apierrors.IsAlreadyExists(err) {
			v.memory.made[kindOutbox] = err == nil
			return failed(err, "creating Secret %q", name)
		}
	}
	live := secretMeta()
	err := v.keeper.direct.Get(ctx, client.ObjectKeyFromObject(secret), live)
	of := v.marks.whose(live)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return failed(err, "reading Secret %q", name)
	case of == anothers:
		return nameTaken(kindSecret, name)
	case live.DeletionTimestamp != nil:
		return isGoing(kindSecret, name)
	case of == ours:
		v.memory.made[kindOutbox] = true
		return nil
	default:
		if err := v.keeper.remove(ctx, live); err != nil {
			return err
		}
	}
	return failed(v.keeper.writer.Create(ctx, secret.DeepCopy()), "creating Secret %q", name)
}
