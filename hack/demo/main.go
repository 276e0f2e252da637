// Command demo starts a sandbox of its own, tells the story of an add-on and of a set on it, and kills leaders at work. It ends
// with exit status 0 when every step held, else with the reason. It asserts what it reads from the API servers.
// With -clusters cluster-api it tells the story of an upgrade of Kubernetes on a sandbox with Cluster API, with all it tells both.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/trellis-addons/trellis/test/disk"
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
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	progress := fleet.NewProgress(os.Stdout)
	options := flag.NewFlagSet("demo", flag.ContinueOnError)
	minors := options.Int("minors", 1, "1: all clusters have one Kubernetes minor; 2: half of them have the one before")
	clusters := options.String("clusters", "kkp", "kkp: the main story; cluster-api: that of an upgrade; all: both")
	if err := options.Parse(arguments); err != nil {
		return err
	}
	if options.NArg() > 0 {
		return fmt.Errorf("the demo takes no arguments, and got %s", strings.Join(options.Args(), " "))
	}
	if *minors != 1 && *minors != 2 {
		return fmt.Errorf("MINORS=%d: write 1 or 2", *minors)
	}
	parts, known := map[string][]string{"kkp": {""}, sandbox.ClusterAPI: {sandbox.ClusterAPI}, "all": {"", sandbox.ClusterAPI}}[*clusters]
	if !known {
		return fmt.Errorf("CLUSTERS=%s: write kkp, %s or all", *clusters, sandbox.ClusterAPI)
	}
	for _, clusters := range parts {
		if err := part(ctx, progress, clusters, *minors == 2); err != nil {
			return err
		}
	}
	progress.Printf("the demo passed")
	return nil
}

// part tells the story of a platform with such Clusters, on a sandbox of its own.
func part(ctx context.Context, progress *fleet.Progress, clusters string, twoMinors bool) error {
	begin := time.Now()
	// Not the folder of `make sandbox`, so that a running sandbox is left alone.
	folder := filepath.Join(os.TempDir(), "trellis-demo-"+strconv.Itoa(os.Getuid()))
	if err := quicken(folder); err != nil {
		return err
	}
	settings := sandbox.Options{
		Folder: folder, Progress: progress, Clusters: clusters, TwoMinors: twoMinors, Replicated: clusters != sandbox.ClusterAPI,
	}
	box, err := sandbox.Start(ctx, settings)
	if err != nil {
		return err
	}
	defer func() { _ = disk.RemoveAll(folder) }() // with the repositories that the story adds
	defer box.Stop()
	memory := box.WatchMemory(ctx)
	reporting := newStory(box, progress)
	narrate, managers := reporting.report, append([]string{sandbox.Master}, sandbox.Seeds()...)
	if clusters == sandbox.ClusterAPI {
		narrate, managers = reporting.reportUpgrade, []string{sandbox.Master, sandbox.Management}
	}
	if err := narrate(ctx); err != nil {
		return fmt.Errorf("%w\n%s", err, endOfLogs(box, managers))
	}
	if clusters == sandbox.ClusterAPI {
		building := box.Phases()[0].Time // the same programs again
		reporting.bars = append(reporting.bars, bar{"the part on Cluster API", time.Since(begin) - building, upgradeLimit})
	}
	report(progress, append(box.Phases(), reporting.phases...), memory)
	return reporting.evaluate(memory.Peak())
}

// Times of the managers in the demo. By default a lease lasts 15 s, and user clusters are compared with the record every 10 min. A leader
// that can't renew its lease ends, and a step may fail by that: the deadline is one that a busy machine keeps. The demo waits for the end
// of a lease once.
const flags = `master --leader-elect-lease-duration=10s --leader-elect-renew-deadline=8s --leader-elect-retry-period=1s
seed --leader-elect-lease-duration=10s --leader-elect-renew-deadline=8s --leader-elect-retry-period=1s --drift-interval=2s
`

// quicken gives the managers of the sandbox in the folder shorter times than a platform's.
func quicken(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("making the demo's folder: %w", err)
	}
	return os.WriteFile(filepath.Join(folder, "flags"), []byte(flags), 0o600)
}

// endOfLogs helps to see why a step failed; the logs themselves go with the sandbox.
func endOfLogs(box *sandbox.Sandbox, managers []string) string {
	var text strings.Builder
	for _, name := range managers {
		for _, replica := range box.Replicas(name) {
			log := filepath.Join(box.Folder, "logs", replica.Name+".log")
			fmt.Fprintf(&text, "--- the end of the log of %s:\n%s\n", replica.Name, fleet.Tail(log, 12))
		}
	}
	return text.String()
}

func report(progress *fleet.Progress, phases []sandbox.Phase, memory *sandbox.Memory) {
	progress.Printf("phases:")
	for _, phase := range phases {
		progress.Printf("  %6.1f s  %s", phase.Time.Seconds(), phase.Name)
	}
	progress.Printf("  %6.1f s  altogether", progress.Elapsed().Round(100*time.Millisecond).Seconds())
	progress.Printf("memory of all processes at its peak: %d MiB", memory.Peak()>>20)
}
