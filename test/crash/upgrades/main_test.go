package upgrades_test

import (
	"flag"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/standins"
)

const managementName = "management"

func TestMain(m *testing.M) {
	standins.ServeIfAsked()
	ctrl.SetLogger(logr.Discard())
	if err := flag.Set("test.parallel", "6"); err != nil { // they wait more than they work; the command line may say otherwise
		panic(err)
	}
	fleet.Main(m, fleet.ClusterOptions{Name: managementName})
}
