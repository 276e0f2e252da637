package access

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/clusters/access/rights"
)

// allowed returns the rules of the Role, or a Problem. A version that requests too much revokes nothing from the running agent, as long
// as the platform lists the rights that the agent has.
func (v *visit) allowed(role *rbacv1.Role, p platform) ([]rbacv1.PolicyRule, error) {
	refused := func(stop *problemError) error {
		stop.endsRights = !p.lists(role)
		return stop
	}
	rules, err := rights.Rules(v.access, v.holder.Installation)
	if err != nil {
		return nil, refused(lasting(v1.ReasonRightsRefused, "access %q requests rights that no agent may have: %v", v.access.Name, err))
	}
	if _, _, err := rights.Subject(v.access, v.subjectData(), v.holder.Core); err != nil {
		return nil, refused(lasting(v1.ReasonRightsRefused, "access %q requests a subject that its add-on may not have: %v", v.access.Name, err))
	}
	label := v1.LabelAgents + "=" + v1.AgentsCustom
	if v.holder.Core {
		label += " or " + v1.AgentsCore
	}
	missing := rights.Uncovered(rules, p.listed)
	switch {
	case v.isForHub() && missing != "":
		return nil, refused(lasting(v1.ReasonRightsRefused, "access %q requests rights that the platform does not allow agents: %s. No "+
			"ClusterRole of the seed with label %s has them", v.access.Name, missing, label))
	case v.isForHub() && !p.isListed:
		return nil, refused(lasting(v1.ReasonRightsRefused, "the platform allows agents no rights: no ClusterRole of the seed has label %s, "+
			"which access %q needs", label, v.access.Name))
	case p.hubProblem != nil:
		return nil, p.hubProblem
	case v.holder.IsShared && !v.keeper.options.Shared:
		stop := lasting(v1.ReasonSharedNamespace, "access %q is not granted: namespace %q has other Clusters too, whose objects the agent "+
			"could reach; --agents-in-shared-namespaces allows it", v.access.Name, v.holder.Cluster.Namespace)
		stop.endsRights, stop.again = true, lookAgain // no event follows when the other Clusters are deleted
		return nil, stop
	}
	return rules, nil
}

// lists says whether the platform lists all rules of a role. Then further rules of another version revoke nothing
// from the running agent.
func (p platform) lists(role *rbacv1.Role) bool {
	return role != nil && p.isListed && rights.Uncovered(role.Rules, p.listed) == ""
}

// blocked revokes the rights if the problem is about them.
func (v *visit) blocked(ctx context.Context, at held, p platform, stop *problemError) (Status, error) {
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
	return v.status(p, about), err
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

// dropSurplus removes the objects of a previous type of access.
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
	stop := lasting(v1.ReasonNameTaken, "%s %q exists already and does not belong to this installation: delete it, or give the access "+
		"another name", kind, name)
	stop.endsRights, stop.again = true, lookAgain
	return stop
}

func isGoing(kind, name string) error { return fmt.Errorf("%s %q is being deleted", kind, name) }
