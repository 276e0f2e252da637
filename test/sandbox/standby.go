package sandbox

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/fleet"
)

// Replicas are the managers of a control plane, the first before the second where there are two.
func (s *Sandbox) Replicas(cluster string) []*Manager {
	replicas := []*Manager{s.managers[cluster]}
	if second := s.standbys[cluster]; second != nil {
		replicas = append(replicas, second)
	}
	return replicas
}

// Leader is the replica of a control plane's manager that leads, by what it tells itself.
func (s *Sandbox) Leader(ctx context.Context, cluster string) (*Manager, error) {
	var last error
	for _, replica := range s.Replicas(cluster) {
		reported, err := fleet.Get(ctx, replica.MetricsURL())
		if err == nil && leads.Match(reported) {
			return replica, nil
		}
		last = errors.Join(last, err)
	}
	return nil, fmt.Errorf("no manager of %s says that it leads: %w", cluster, errors.Join(errNotYet, last))
}

// Holders are the identities that lead on control planes, by their names.
func (s *Sandbox) Holders(ctx context.Context, clusters ...string) (map[string]string, error) {
	holders := map[string]string{}
	for _, cluster := range clusters {
		var leases coordinationv1.LeaseList
		if err := s.Client(cluster).List(ctx, &leases, client.InNamespace(Namespace)); err != nil {
			return nil, fmt.Errorf("reading the leases of %s: %w", cluster, err)
		}
		if len(leases.Items) != 1 || leases.Items[0].Spec.HolderIdentity == nil {
			return nil, fmt.Errorf("%s has %d leases in namespace %q, want one that is held", cluster, len(leases.Items), Namespace)
		}
		holders[cluster] = *leases.Items[0].Spec.HolderIdentity
	}
	return holders, nil
}

// leads is the line of a manager's metrics that says so.
var leads = regexp.MustCompile(`(?m)^leader_election_master_status\{.*\} 1$`)

// Standby starts a second replica of a control plane's manager, as its Deployment has with two: another pod of the same Deployment. It
// waits for the lease. What is asked of webhooks and queries goes to the first.
func (s *Sandbox) Standby(ctx context.Context, cluster string) (*Manager, error) {
	standby, err := s.addStandby(cluster)
	if err != nil {
		return nil, err
	}
	return standby, standby.Start(ctx)
}

func (s *Sandbox) addStandby(cluster string) (*Manager, error) {
	first := s.managers[cluster]
	second := first.container
	second.Name += "-standby"
	served := []string{"--webhook-bind-address"}
	if cluster != Master {
		served = append(served, "--query-bind-address")
	}
	for _, flag := range served {
		port, err := fleet.FreePort()
		if err != nil {
			return nil, fmt.Errorf("finding a port for %s: %w", flag, err)
		}
		second.Arguments = slices.Concat(second.Arguments, []string{flag, fmt.Sprintf("127.0.0.1:%d", port)})
	}
	standby := s.newManager(cluster, second)
	s.standbys[cluster] = standby
	return standby, nil
}
