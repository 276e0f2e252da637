package access

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/access/rights"
	"github.com/trellis-addons/trellis/pkg/backoff"
)

// allowed are the rules of the Role, or a Problem. A version that asks for too much takes nothing from the agent that runs, as long as the
// platform lists what that agent has.
func (v *visit) allowed(role *rbacv1.Role, p platform) ([]rbacv1.PolicyRule, error) {
	refused := func(stop *problemError) error {
		stop.endsRights = !p.lists(role)
		return stop
	}
	rules, err := rights.Rules(v.access, v.holder.Installation)
	if err != nil {
		return nil, refused(lasting(v1.ReasonRightsRefused, "access %q asks for what no agent may have: %v", v.access.Name, err))
	}
	label := v1.LabelAgents + "=" + v1.AgentsCustom
	if v.holder.Core {
		label += " or " + v1.AgentsCore
	}
	missing := rights.Uncovered(rules, p.listed)
	switch {
	case v.isForHub() && missing != "":
		return nil, refused(lasting(v1.ReasonRightsRefused, "access %q asks for more than the platform lists for agents: %s. "+
			"No ClusterRole of the seed with label %s has it", v.access.Name, missing, label))
	case v.isForHub() && !p.isListed:
		return nil, refused(lasting(v1.ReasonRightsRefused, "the platform gives no rights to agents: no ClusterRole of the seed has label %s, "+
			"as access %q needs", label, v.access.Name))
	case p.hubProblem != nil:
		return nil, p.hubProblem
	case v.holder.IsShared && !v.keeper.options.Shared:
		stop := lasting(v1.ReasonSharedNamespace, "access %q is not given: other Clusters have namespace %q too, and the agent could "+
			"reach what is theirs (--agents-in-shared-namespaces)", v.access.Name, v.holder.Cluster.Namespace)
		stop.endsRights, stop.again = true, lookAgain // nobody tells when the others are gone
		return nil, stop
	}
	return rules, nil
}

// lists says whether the platform lists what a role has: what another version asks for besides takes nothing from the
// agent that runs.
func (p platform) lists(role *rbacv1.Role) bool {
	return role != nil && p.isListed && rights.Uncovered(role.Rules, p.listed) == ""
}

// blocked takes the rights away where the problem is about them.
func (v *visit) blocked(ctx context.Context, at held, p platform, stop *problemError) (Standing, error) {
	var err error
	if stop.endsRights {
		err = v.withdraw(ctx, at.binding)
	}
	about := facts{isBlocked: true, problem: stop.Problem}
	switch {
	case stop.again > 0:
		about.next = v.now.Add(stop.again)
	case !stop.IsLasting:
		v.memory.tries++
		about.next = v.now.Add(backoff.After(v.memory.tries, firstWait, mostWait))
	}
	return v.standing(p, about), err
}

// withdraw removes the binding, if it is ours.
func (v *visit) withdraw(ctx context.Context, binding *rbacv1.RoleBinding) error {
	if binding == nil {
		if !v.memory.made[kindBinding] {
			return nil
		}
		binding = &rbacv1.RoleBinding{}
		err := v.keeper.direct.Get(ctx, client.ObjectKey{Namespace: v.holder.Cluster.Namespace, Name: v.agentName()}, binding)
		if err != nil && !apierrors.IsNotFound(err) {
			return failed(err, "reading RoleBinding %q", v.agentName())
		}
	}
	if v.marks.mayRemove(binding) {
		if err := v.keeper.remove(ctx, binding); err != nil {
			return err
		}
	}
	v.memory.made[kindBinding] = false
	return nil
}

// dropSurplus removes what another type of access had.
func (v *visit) dropSurplus(ctx context.Context, at held) error {
	var surplus []client.Object
	if !v.isForHub() {
		surplus = append(surplus, orNil(at.binding), orNil(at.role))
	}
	if v.kind() == v1.AccessByCertificate {
		surplus = append(surplus, orNil(at.account))
	}
	for _, one := range surplus {
		if one == nil || v.marks.whose(one) != ours {
			continue
		}
		if err := v.keeper.remove(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

func nameTaken(kind, name string) error {
	stop := lasting(v1.ReasonNameTaken, "%s %q is in the way: it is not of this installation, and is left alone. "+
		"Remove it, or give the access another name", kind, name)
	stop.endsRights, stop.again = true, lookAgain
	return stop
}

func isGoing(kind, name string) error { return fmt.Errorf("%s %q is being deleted", kind, name) }
