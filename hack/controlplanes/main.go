// Command controlplanes builds the control-plane programs that tests, demo and benchmarks run.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/trellis-addons/trellis/test/binaries"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "controlplanes:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	root, err := binaries.Root()
	if err != nil {
		return err
	}
	cache, err := binaries.Cache()
	if err != nil {
		return err
	}
	return binaries.Build(ctx, root, cache, os.Stdout)
}
