package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/target"
)

// Options say what the platform gives to agents.
type Options struct {
	// Hub is how agents reach the seed, as it is now.
	Hub func() (Hub, error)
	// Shared has agents allowed in namespaces that several Clusters have.
	Shared bool
	// Approves are the signers whose requests the manager approves.
	Approves []string
}

// Holder is the installation whose credentials they are.
type Holder struct {
	Cluster target.Ref
	// ClusterOwner refers to the Cluster: what is made in its namespace goes with it.
	ClusterOwner metav1.OwnerReference
	Owner        ownership.Owner
	// Installation and Addon are names.
	Installation, Addon string
	// Core says that the catalogue is of type Core.
	Core bool
	// RotateAt and ReconcileAt are the values of the installation's annotations.
	RotateAt, ReconcileAt string
	// IsShared says that other Clusters have the namespace too.
	IsShared bool
}

// Writer writes to the seed.
type Writer interface {
	Create(ctx context.Context, object client.Object, options ...client.CreateOption) error
	Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error
	Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error
	SubResource(subResource string) client.SubResourceClient
}

// Keeper keeps the credentials of agents.
type Keeper struct {
	writer  Writer
	direct  client.Reader
	held    client.Reader
	options Options
}

// NewKeeper writes by a writer. Direct reads past caches; held is a cache of what has LabelAccess (ServiceAccounts, Roles, RoleBindings,
// and Secrets as metadata) and of ClusterRoles with LabelAgents.
func NewKeeper(writer Writer, direct, held client.Reader, options Options) *Keeper {
	return &Keeper{writer: writer, direct: direct, held: held, options: options}
}

// Keep makes, puts back and renews the credentials that are asked for. There is one Standing for each, in order. At rest it makes no call.
// An error is a call on the seed that failed in a way that passes; the others' Standings hold nevertheless.
func (k *Keeper) Keep(ctx context.Context, holder Holder, asked []v1.Access, memory *Memory, now time.Time) ([]Standing, error) {
	if len(asked) == 0 {
		return nil, nil
	}
	platform, err := k.platform(ctx, holder)
	if err != nil {
		return nil, err
	}
	memory.turnTo(holder)
	holder.ReconcileAt = brief(holder.ReconcileAt)
	standings := make([]Standing, len(asked))
	var failures []error
	for at := range asked {
		v := &visit{credential: holder.credential(asked[at]), keeper: k, memory: memory.of(asked[at].Name), now: now}
		standings[at], err = v.keep(ctx, platform)
		failures = append(failures, err)
	}
	return standings, errors.Join(failures...)
}

// platform is what is given to agents, as it is now.
type platform struct {
	hub Hub
	// hubProblem is why there is none.
	hubProblem error
	// isListed says that there is a list, which may be of nothing.
	isListed bool
	listed   []rbacv1.PolicyRule
}

func (k *Keeper) platform(ctx context.Context, holder Holder) (p platform, err error) {
	p.hub, p.hubProblem = k.hub()
	p.listed, p.isListed, err = k.listed(ctx, holder.Core)
	return p, err
}

// listed are the rules that agents may be given, by the ClusterRoles whose label counts for the type of catalogue; isListed says whether
// there is one.
func (k *Keeper) listed(ctx context.Context, core bool) (rules []rbacv1.PolicyRule, isListed bool, err error) {
	labels := []string{v1.AgentsCustom}
	if core {
		labels = append(labels, v1.AgentsCore)
	}
	for _, label := range labels {
		var roles rbacv1.ClusterRoleList
		if err := k.held.List(ctx, &roles, client.MatchingLabels{v1.LabelAgents: label}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, false, fmt.Errorf("listing what agents may be given: %w", err)
		}
		isListed = isListed || len(roles.Items) > 0
		for at := range roles.Items {
			rules = append(rules, roles.Items[at].Rules...)
		}
	}
	return rules, isListed, nil
}
