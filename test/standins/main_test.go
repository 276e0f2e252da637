package standins

import (
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trellis-addons/trellis/test/fleet"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	fleet.Main(m, fleet.ClusterOptions{Name: "seed"})
}
