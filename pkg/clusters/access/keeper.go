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
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// Options say what the platform grants to agents.
type Options struct {
	// Hub is the current address of the seed for agents.
	Hub func() (Hub, error)
	// Shared allows agents in namespaces that several Clusters share.
	Shared bool
	// Approves are the signers whose requests the manager approves.
	Approves []string
}

// Holder is the installation that owns the credentials.
type Holder struct {
	Cluster target.Ref
	// ClusterOwner refers to the Cluster: objects in its namespace are deleted with it.
	ClusterOwner metav1.OwnerReference
	Owner        ownership.Owner
	// Installation and Addon are names.
	Installation, Addon string
	// Core says that the catalogue is of type Core.
	Core bool
	// RotateAt and ReconcileAt are the values of the installation's annotations.
	RotateAt, ReconcileAt string
	// IsShared says that other Clusters share the namespace.
	IsShared bool
}

// Writer writes to the seed.
type Writer interface {
	Create(ctx context.Context, object client.Object, options ...client.CreateOption) error
	Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error
	Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error
	SubResource(subResource string) client.SubResourceClient
}

// Keeper manages the credentials of agents.
type Keeper struct {
	writer  Writer
	direct  client.Reader
	held    client.Reader
	options Options
}

// NewKeeper writes with the writer. Direct reads past caches; held is a cache of objects with LabelAccess (ServiceAccounts, Roles,
// RoleBindings, and Secrets as metadata) and of ClusterRoles with LabelAgents.
func NewKeeper(writer Writer, direct, held client.Reader, options Options) *Keeper {
	return &Keeper{writer: writer, direct: direct, held: held, options: options}
}

// Keep creates, repairs and renews the requested credentials. It returns one Status for each, in order. If nothing changes it makes no
// call. An error is a call on the seed that may succeed later; the other Standings are valid still.
func (k *Keeper) Keep(ctx context.Context, holder Holder, asked []v1.Access, memory *Memory, now time.Time) ([]Status, error) {
	if len(asked) == 0 {
		return nil, nil
	}
	platform, err := k.platform(ctx, holder)
	if err != nil {
		return nil, err
	}
	memory.turnTo(holder)
	holder.ReconcileAt = brief(holder.ReconcileAt)
	statuses := make([]Status, len(asked))
	var failures []error
	for at := range asked {
		v := &visit{credential: holder.credential(asked[at]), keeper: k, memory: memory.of(asked[at].Name), now: now}
		statuses[at], err = v.keep(ctx, platform)
		failures = append(failures, err)
	}
	return statuses, errors.Join(failures...)
}

// platform has the current settings for agents.
type platform struct {
	hub Hub
	// hubProblem is why there is no hub.
	hubProblem error
	// isListed says that there is a list. It may be empty.
	isListed bool
	listed   []rbacv1.PolicyRule
}

func (k *Keeper) platform(ctx context.Context, holder Holder) (p platform, err error) {
	p.hub, p.hubProblem = k.hub()
	p.listed, p.isListed, err = k.listed(ctx, holder.Core)
	return p, err
}

// listed returns the rules that agents can be given, from the ClusterRoles whose label matches the type of catalogue; isListed says
// whether there is one.
func (k *Keeper) listed(ctx context.Context, core bool) (rules []rbacv1.PolicyRule, isListed bool, err error) {
	labels := []string{v1.AgentsCustom}
	if core {
		labels = append(labels, v1.AgentsCore)
	}
	for _, label := range labels {
		var roles rbacv1.ClusterRoleList
		if err := k.held.List(ctx, &roles, client.MatchingLabels{v1.LabelAgents: label}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, false, fmt.Errorf("listing the ClusterRoles for agents: %w", err)
		}
		isListed = isListed || len(roles.Items) > 0
		for at := range roles.Items {
			rules = append(rules, roles.Items[at].Rules...)
		}
	}
	return rules, isListed, nil
}
