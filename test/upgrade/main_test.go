package upgrade

import (
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// folder has the programs of this checkout.
var folder string

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // the clients' library warns at length when nobody has said where to log
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if folder, err = os.MkdirTemp("", "trellis-upgrade-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	return m.Run()
}
