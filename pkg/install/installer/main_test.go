package installer

import (
	"testing"

	"github.com/trellis-addons/trellis/test/fleet"
)

func TestMain(m *testing.M) { fleet.Main(m, fleet.ClusterOptions{Name: "both"}) }
