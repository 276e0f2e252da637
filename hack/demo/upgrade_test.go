package main

import (
	"testing"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Red when a control plane that goes before its network, or workers that go before a gate is right, leave the demo green.
func TestOrderOfAnUpgrade(t *testing.T) {
	for _, test := range []struct {
		why  string
		seen progressOf
		want bool
	}{
		{"at rest", progressOf{controlPlane: before, workers: before, versions: []string{"1.0.0"}, rightFor: []string{before}}, true},
		{"the control plane first", progressOf{controlPlane: after, workers: before, versions: []string{"1.0.0"}, rightFor: []string{before}}, false},
		{"behind the network", progressOf{controlPlane: after, workers: before, versions: []string{bridging}, rightFor: []string{before}}, true},
		{"workers too early", progressOf{controlPlane: after, workers: after, versions: []string{bridging}, rightFor: []string{after, before}}, false},
		{"workers before a gate is told right", progressOf{controlPlane: after, workers: after, versions: []string{bridging}, rightFor: []string{""}}, false},
		{"let go too early", progressOf{
			controlPlane: after, workers: before, held: kubermaticv1.ReasonNotUpgrading, versions: []string{bridging}, rightFor: []string{before},
		}, false},
		{"over", progressOf{controlPlane: after, workers: after, versions: []string{bridging}, rightFor: []string{after, after}}, true},
	} {
		if err := test.seen.isInOrder(); (err == nil) != test.want {
			t.Errorf("%s: %v", test.why, err)
		}
	}
}
