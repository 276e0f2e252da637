// Command sandbox runs a whole platform on this machine until it is interrupted; "sandbox cluster-api" runs one with Clusters of Cluster
// API, and "sandbox down" ends the one that runs.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/sandbox"
)

var errInterrupted = errors.New("interrupted; everything is stopped")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := run(ctx, os.Args[1:])
	if err != nil && ctx.Err() != nil {
		err = errInterrupted // what was cut short by it would only confuse
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	switch {
	case len(arguments) == 0:
		return up(ctx, "")
	case len(arguments) == 1 && arguments[0] == sandbox.ClusterAPI:
		return up(ctx, sandbox.ClusterAPI)
	case len(arguments) == 1 && arguments[0] == "down":
		return down(ctx)
	}
	return fmt.Errorf("arguments %q are not known: use none, %s, or down", arguments, sandbox.ClusterAPI)
}

func up(ctx context.Context, clusters string) error {
	progress := fleet.NewProgress(os.Stdout)
	box, err := sandbox.Start(ctx, sandbox.Options{Progress: progress, Clusters: clusters})
	if err != nil {
		return err
	}
	defer box.Stop()
	for _, phase := range box.Phases() {
		progress.Printf("%s took %.1f s", phase.Name, phase.Time.Seconds())
	}
	box.Describe(os.Stdout)
	<-ctx.Done()
	progress.Printf("ending the sandbox")
	return nil
}

func down(ctx context.Context) error {
	err := sandbox.Down(ctx, "")
	if errors.Is(err, sandbox.ErrNotRunning) {
		fmt.Println("no sandbox is running")
		return nil
	}
	if err == nil {
		fmt.Println("the sandbox is gone")
	}
	return err
}
