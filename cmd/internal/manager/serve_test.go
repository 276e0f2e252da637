package manager

import (
	"context"
	"flag"
	"net"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// quietly are the arguments of a manager that serves nothing.
func quietly() []string {
	return []string{"--metrics-bind-address=0", "--health-probe-bind-address=0", "--leader-elect=false", "--webhook-bind-address=0"}
}

// freeAddress is one of the loopback at which nobody listens.
func freeAddress(t *testing.T, like string) string {
	t.Helper()
	free, err := net.Listen("tcp", like)
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	return address
}

// serve starts a manager that has nothing to do, and serves what its arguments say alone; it ends with the test.
func serve(t *testing.T, config *rest.Config, prepare func(*Flags), arguments ...string) {
	t.Helper()
	var flags Flags
	set := flag.NewFlagSet("manager", flag.ContinueOnError)
	flags.Register(set)
	if err := set.Parse(append(quietly(), arguments...)); err != nil {
		t.Fatal(err)
	}
	if prepare != nil {
		prepare(&flags)
	}
	made, err := flags.New(config, "lease", cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background()) // until the cleanup
	go func() { ended <- made.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
