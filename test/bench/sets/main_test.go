package sets_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/long"
	"github.com/trellis-addons/trellis/test/standins"
)

func TestMain(m *testing.M) {
	standins.ServeIfAsked()
	ctrl.SetLogger(logr.Discard())
	if long.Skips() {
		os.Exit(m.Run())
	}
	fleet.Main(m, fleet.ClusterOptions{Name: "seed"})
}
