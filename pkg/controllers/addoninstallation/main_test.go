package addoninstallation_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/rendering"
)

// spinVariable makes a process of the test binary harmless and busy, until its parent ends it.
const spinVariable = "TRELLIS_TEST_SPIN"

func TestMain(m *testing.M) {
	if os.Getenv(spinVariable) != "" {
		for turns := 0; ; turns++ {
			runtime.KeepAlive(turns)
		}
	}
	rendering.Serve()
	fleet.Main(m, fleet.ClusterOptions{Name: "both", Controllers: true}, fleet.ClusterOptions{Name: "elsewhere"})
}
