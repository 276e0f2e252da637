// Command sandbox runs a whole platform on this machine until it is interrupted; with -clusters cluster-api one with Clusters of
// Cluster API. "sandbox down" ends the one that runs.
package main

import (
	"context"
	"errors"
	"flag"
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
	if len(arguments) == 1 && arguments[0] == "down" {
		return down(ctx)
	}
	flags := flag.NewFlagSet("sandbox", flag.ContinueOnError)
	minors := flags.Int("minors", 1, "1: all clusters have one Kubernetes minor; 2: half of them have the one before")
	clusters := flags.String("clusters", "kkp", "whose Clusters it has: kkp or cluster-api")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *minors != 1 && *minors != 2 {
		return fmt.Errorf("MINORS=%d: write 1 or 2", *minors)
	}
	kind, known := map[string]string{"kkp": "", sandbox.ClusterAPI: sandbox.ClusterAPI}[*clusters]
	if !known || flags.NArg() > 0 {
		return fmt.Errorf("CLUSTERS=%s %q: write kkp or %s", *clusters, flags.Args(), sandbox.ClusterAPI)
	}
	return up(ctx, sandbox.Options{Clusters: kind, TwoMinors: *minors == 2, Web: true})
}

func up(ctx context.Context, options sandbox.Options) error {
	progress := fleet.NewProgress(os.Stdout)
	options.Progress = progress
	box, err := sandbox.Start(ctx, options)
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
		fmt.Println("the sandbox is stopped")
	}
	return err
}
