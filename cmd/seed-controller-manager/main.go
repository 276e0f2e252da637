// Command seed-controller-manager installs add-ons in the user clusters of a seed.
package main

import (
	"context"
	"flag"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trellis-addons/trellis/cmd/internal/manager"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/cmd/wiring/renderers"
	"github.com/trellis-addons/trellis/pkg/render/child"
)

// lease is the lease of the leader election.
const lease = "trellis-seed.addons.kubermatic.k8c.io"

func main() {
	child.Serve(renderers.All())
	options := newOptions()
	options.register(flag.CommandLine)
	if code, goesOn := manager.Parse(flag.CommandLine, os.Args[1:], os.Stdout, os.Stderr); !goesOn {
		os.Exit(code)
	}
	if options.PrintVersion(os.Stdout, "seed-controller-manager") {
		return
	}
	logger := options.Logger()
	program := manager.Program{Chart: "trellis-seed", Lease: lease, OnSeed: true}
	if code, asked := options.Task(context.Background(), program, os.Stdout, os.Stderr); asked {
		os.Exit(code)
	}
	options.LimitMemory(options.rendering.total())
	if err := run(ctrl.SetupSignalHandler(), options, logger); err != nil {
		logger.Error(manager.Explain(err), "seed-controller-manager ends")
		os.Exit(1)
	}
}

func run(ctx context.Context, options *options, logger logr.Logger) error {
	if err := options.CheckMemory("render-memory", options.rendering.memory.Value()); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config = rest.AddUserAgent(config, "trellis-seed")
	held := wiring.NewInstallations()
	made, err := options.New(config, lease, wiring.Cache(wiring.HeldOnSeeds(options.CatalogueNamespace), held))
	if err != nil {
		return err
	}
	if err := wire(ctx, made, held, options, logger); err != nil {
		return err
	}
	return made.Start(ctx)
}
