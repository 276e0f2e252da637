package sandbox

import (
	"context"
	"fmt"
	"slices"

	"github.com/trellis-addons/trellis/test/fleet"
)

// StandbySuffix ends the name of a second replica.
const StandbySuffix = "-standby"

// Standby starts a second replica of a control plane's manager, as its Deployment has with two: another pod of the same Deployment. It
// waits for the lease. What is asked of webhooks and queries goes to the first.
func (s *Sandbox) Standby(ctx context.Context, cluster string) (*Manager, error) {
	first := s.managers[cluster]
	second := first.container
	second.Name += StandbySuffix
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
	return standby, standby.Start(ctx)
}
