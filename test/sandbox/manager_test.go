package sandbox

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/trellis-addons/trellis/test/fleet"
)

// managerVariable makes the test binary a program with a manager's probes.
const managerVariable = "TRELLIS_TEST_MANAGER"

func TestMain(m *testing.M) {
	if os.Getenv(managerVariable) != "" {
		serveProbes(os.Args[1:])
	}
	os.Exit(m.Run())
}

func serveProbes(arguments []string) {
	set := flag.NewFlagSet("manager", flag.ExitOnError)
	address := set.String("health-probe-bind-address", "", "")
	set.String("metrics-bind-address", "", "")
	_ = set.Parse(arguments)
	server := &http.Server{Addr: *address, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(
		func(http.ResponseWriter, *http.Request) {})}
	fmt.Fprintln(os.Stderr, server.ListenAndServe())
	os.Exit(1)
}

// TestManagerIsKeptRunning holds that a killed manager comes back, and a stopped one does not.
func TestManagerIsKeptRunning(t *testing.T) {
	f := fleet.ForTest(t)
	manager := &Manager{
		ready: "/readyz", serving: servingManager,
		Name: "manager", sandbox: &Sandbox{Fleet: f, Folder: t.TempDir()}, run: func(_ context.Context, arguments []string) (*fleet.Process, error) {
			return f.Run(fleet.Command{
				Name: "manager", Path: os.Args[0], Environment: []string{managerVariable + "=1"}, Arguments: arguments,
			})
		},
	}
	t.Cleanup(manager.Stop)
	if err := manager.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := manager.Process()
	first.Kill()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 2*time.Minute, true,
		func(context.Context) (bool, error) {
			return manager.Process() != first && manager.Process().Ended() == nil, nil
		})
	if err != nil {
		t.Fatalf("a killed manager does not come back: %v", err)
	}
	manager.Stop()
	if manager.Process().Ended() == nil {
		t.Error("a stopped manager runs")
	}
}
