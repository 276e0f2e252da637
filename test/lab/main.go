package lab

import (
	"testing"

	"github.com/trellis-addons/trellis/test/fleet"
)

// Main starts one real control plane, whose workloads get ready, for all tests of the package.
func Main(m *testing.M) {
	fleet.Main(m, fleet.ClusterOptions{Name: "user", Workloads: true})
}
