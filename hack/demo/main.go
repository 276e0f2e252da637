// Command demo starts a sandbox of its own, tells the story of an add-on and of a set on it, kills leaders at work, then tells that of an
// upgrade of Kubernetes on a sandbox with Cluster API, and ends: with exit status 0 when every step held, else with the reason. What it
// asserts, it reads from the API servers.
// "demo cluster-api" tells the second alone.
package main

import (
	"context"
	"errors"
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
	parts := []string{"", sandbox.ClusterAPI}
	if len(arguments) == 1 && arguments[0] == sandbox.ClusterAPI {
		parts, arguments = parts[1:], nil
	}
	if len(arguments) > 0 {
		return fmt.Errorf("arguments %q are not known: use none, or %s", arguments, sandbox.ClusterAPI)
	}
	for _, clusters := range parts {
		if err := part(ctx, progress, clusters); err != nil {
			return err
		}
	}
	progress.Printf("the demo is green")
	return nil
}

// part tells what there is to tell of a platform with such Clusters, on a sandbox of its own.
func part(ctx context.Context, progress *fleet.Progress, clusters string) error {
	begin := time.Now()
	// Beside the folder of `make sandbox`, so that a running sandbox is left alone.
	folder := filepath.Join(os.TempDir(), "trellis-demo-"+strconv.Itoa(os.Getuid()))
	options := sandbox.Options{Folder: folder, Progress: progress, Clusters: clusters, Replicated: clusters != sandbox.ClusterAPI}
	box, err := sandbox.Start(ctx, options)
	if err != nil {
		return err
	}
	defer func() { _ = disk.RemoveAll(folder) }() // with the repositories that the story adds
	defer box.Stop()
	memory := box.WatchMemory(ctx)
	told := &story{box: box, progress: progress}
	tell, managers := told.tell, append([]string{sandbox.Master}, sandbox.Seeds()...)
	if clusters == sandbox.ClusterAPI {
		tell, managers = told.tellUpgrade, []string{sandbox.Master, sandbox.Management}
	}
	if err := tell(ctx); err != nil {
		return fmt.Errorf("%w\n%s", err, endOfLogs(box, managers))
	}
	if clusters == sandbox.ClusterAPI {
		building := box.Phases()[0].Time // the same programs again
		told.bars = append(told.bars, bar{"the part on Cluster API", time.Since(begin) - building, upgradeLimit})
	}
	report(progress, append(box.Phases(), told.phases...), memory)
	return told.judge(memory.Peak())
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
