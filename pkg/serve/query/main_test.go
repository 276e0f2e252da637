package query_test

import (
	"flag"
	"os"
	"testing"

	"github.com/trellis-addons/trellis/test/fleet"
)

// TestMain starts an API server, except for fuzzing: its workers are processes of their own, and
// need none.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.fuzz").Value.String() != "" {
		os.Exit(m.Run())
	}
	fleet.Main(m, fleet.ClusterOptions{Name: "seed"}, fleet.ClusterOptions{Name: "certified", Certificates: true}) // the first is killed
}
