// Command demo starts a sandbox of its own, tells the story of an add-on on it and ends: with exit status 0 when every
// step held, else with the reason. What it asserts, it reads from the API servers.
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

	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/sandbox"
)

var errInterrupted = errors.New("interrupted; everything is stopped")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := run(ctx)
	if err != nil && ctx.Err() != nil {
		err = errInterrupted // what was cut short by it would only confuse
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	progress := fleet.NewProgress(os.Stdout)
	// Beside the folder of `make sandbox`, so that a running sandbox is left alone.
	folder := filepath.Join(os.TempDir(), "trellis-demo-"+strconv.Itoa(os.Getuid()))
	box, err := sandbox.Start(ctx, sandbox.Options{Folder: folder, Progress: progress})
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder) // with the repositories that the story adds
	defer box.Stop()
	memory := box.WatchMemory(ctx)
	told := &story{box: box, progress: progress}
	if err := told.tell(ctx); err != nil {
		return fmt.Errorf("%w\n%s", err, endOfLogs(box))
	}
	report(progress, append(box.Phases(), told.phases...), memory)
	return told.judge(memory.Peak())
}

// endOfLogs helps to see why a step failed; the logs themselves go with the sandbox.
func endOfLogs(box *sandbox.Sandbox) string {
	var text strings.Builder
	for _, name := range append([]string{sandbox.Master}, sandbox.Seeds()...) {
		manager := box.Manager(name).Name
		log := filepath.Join(box.Folder, "logs", manager+".log")
		fmt.Fprintf(&text, "--- the end of the log of %s:\n%s\n", manager, fleet.Tail(log, 12))
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
