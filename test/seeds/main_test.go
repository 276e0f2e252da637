package seeds_test

import (
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/standins"
)

const masterName = "master"

func TestMain(m *testing.M) {
	standins.ServeIfAsked()
	ctrl.SetLogger(logr.Discard())
	fleet.Main(m, fleet.ClusterOptions{Name: masterName}, fleet.ClusterOptions{Name: "north"},
		fleet.ClusterOptions{Name: "south"}) // those that are Own are restored from a backup
}
