package crash_test

import (
	"flag"
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trellis-addons/trellis/test/fleet"
)

// Clusters of the fleet.
const (
	seedName = "seed"
	userName = "user"
)

// TestMain makes the test binary a controller if it was started as one; otherwise it runs the tests.
func TestMain(m *testing.M) {
	if path := os.Getenv(childVariable); path != "" {
		runChild(path)
		return
	}
	ctrl.SetLogger(logr.Discard())
	if err := flag.Set("test.parallel", "8"); err != nil { // they wait more than they work; the command line may say otherwise
		panic(err)
	}
	fleet.Main(m, fleet.ClusterOptions{Name: seedName, Certificates: true},
		fleet.ClusterOptions{Name: userName, Workloads: true}) // which is killed
}
