package sandbox

import (
	"context"
	"fmt"

	"github.com/trellis-addons/trellis/test/fleet"
)

// Standby starts a second replica of a control plane's manager, as its Deployment has with two: with the arguments and the account of
// the first, and a store and ports of its own. It waits for the lease. What is asked of webhooks and queries goes to the first.
func (s *Sandbox) Standby(ctx context.Context, cluster string) (*Manager, error) {
	first := s.managers[cluster]
	own := []string{"--store-folder", s.path("store", cluster+"-standby")}
	served := []string{"--webhook-bind-address"}
	if cluster != Master {
		served = append(served, "--query-bind-address")
	}
	for _, flag := range served {
		port, err := fleet.FreePort()
		if err != nil {
			return nil, fmt.Errorf("finding a port for %s: %w", flag, err)
		}
		own = append(own, flag, fmt.Sprintf("127.0.0.1:%d", port))
	}
	standby := &Manager{
		Name: first.Name + "-standby", cluster: cluster, sandbox: s, program: first.program, memory: first.memory,
		arguments: append(append([]string{}, first.arguments...), own...), environment: first.environment,
	}
	return standby, standby.Start(ctx)
}
