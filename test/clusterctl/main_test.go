package clusterctl

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/long"
)

// management is the cluster that clusterctl gets, and byHelm the one that helm gets.
const management, byHelm = "management", "helm"

func TestMain(m *testing.M) {
	if long.Skips() {
		os.Exit(m.Run())
	}
	log.SetLogger(logr.Discard()) // the clients' library warns at length when nobody has said where to log
	fleet.Main(m, fleet.ClusterOptions{Name: management}, fleet.ClusterOptions{Name: byHelm})
}
