package main

import (
	"testing"

	"github.com/trellis-addons/trellis/test/clusterapi"
)

// Red when a control plane that may go before its network, or workers that may go before a gate is right, leave the demo green: also where
// that is for one moment only.
func TestOrderOfAnUpgrade(t *testing.T) {
	type seen = clusterapi.Progress
	gate := func(version, madeFor string) clusterapi.Gate {
		return clusterapi.Gate{Version: version, MadeFor: madeFor, Ready: true}
	}
	old, moved, right := gate("1.0.0", before), gate(bridging, before), gate(bridging, after)
	unready := clusterapi.Gate{Version: bridging, MadeFor: after}
	all := func(gate clusterapi.Gate) map[string]clusterapi.Gate {
		return map[string]clusterapi.Gate{"cni": gate, "cloud": gate, "storage": gate}
	}
	rest := seen{Wanted: before, ControlPlane: before, Workers: []string{before}, Hook: true, Gates: all(old)}
	over := seen{Wanted: after, ControlPlane: after, Workers: []string{after}, Hook: true, Gates: all(right)}
	for _, test := range []struct {
		why  string
		seen clusterapi.Progress
		cni  clusterapi.Gate
		rest clusterapi.Gate
		want bool
	}{
		{"at rest", seen{Wanted: before, ControlPlane: before, Workers: []string{before}, Hook: true}, old, old, true},
		{"it waits", seen{Wanted: after, ControlPlane: before, Workers: []string{before}, Hook: true}, old, old, true},
		{"let go before the network", seen{Wanted: after, ControlPlane: before, Workers: []string{before}, Held: true}, old, old, false},
		{"let go with the network under way", seen{Wanted: after, ControlPlane: before, Workers: []string{before}, Held: true}, unready, old, false},
		{"behind the network", seen{Wanted: after, ControlPlane: after, Workers: []string{before}, Held: true}, moved, old, true},
		{"workers let go too early", seen{Wanted: after, ControlPlane: after, Workers: []string{before}, Hook: true}, right, old, false},
		{"workers go too early", seen{Wanted: after, ControlPlane: after, Workers: []string{after, before}, Held: true}, right, old, false},
		{"workers before a gate is Ready", seen{Wanted: after, ControlPlane: after, Workers: []string{before}}, right, unready, false},
		{"workers before a gate is told right", seen{Wanted: after, ControlPlane: after, Workers: []string{after}}, right, clusterapi.Gate{}, false},
		{"over", seen{Wanted: after, ControlPlane: after, Workers: []string{after}, Hook: true}, right, right, true},
	} {
		test.seen.Gates = map[string]clusterapi.Gate{"cni": test.cni, "cloud": test.rest, "storage": test.rest}
		history := []clusterapi.Progress{rest, test.seen, over}
		err := inOrder(func(see func(clusterapi.Progress) error) error {
			for _, now := range history {
				if err := see(now); err != nil {
					return err
				}
			}
			return nil
		})
		if (err == nil) != test.want {
			t.Errorf("%s: %v", test.why, err)
		}
	}
}
