// Command images builds images of all programs without a container engine: to folders in OCI's
// layout, to archives that `docker load` takes, and to a registry. docs/spec/images.md says what is
// in them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/trellis-addons/trellis/hack/images/checkout"
	"github.com/trellis-addons/trellis/hack/images/oci"
	"github.com/trellis-addons/trellis/hack/images/output"
)

// options are the command's flags.
type options struct {
	module, folder, platforms, version string
	registry                           output.Registry
}

// epoch is the variable that says another date than the commit's.
const epoch = "SOURCE_DATE_EPOCH"

func main() {
	var asked options
	flag.StringVar(&asked.module, "module", ".", "the checkout's folder")
	flag.StringVar(&asked.folder, "out", "bin/images", "the folder to write to")
	flag.StringVar(&asked.platforms, "platforms", "linux/amd64,linux/arm64", "the platforms, comma-separated")
	flag.StringVar(&asked.version, "version", "", "the version; empty: the tag of the commit, or one made of its date and id")
	flag.StringVar(&asked.registry.Path, "push", "", "push to this registry too, as host/path")
	flag.BoolVar(&asked.registry.Insecure, "insecure", false, "push over plain http, for labs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, asked); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, asked options) error {
	made, err := build(ctx, asked)
	if err != nil {
		return err
	}
	return write(ctx, asked, made)
}

func build(ctx context.Context, asked options) (oci.Build, error) {
	// What people wrote is looked at before anything is built for minutes.
	if err := asked.registry.Check(); err != nil {
		return oci.Build{}, err
	}
	stamp, err := checkout.Read(ctx, asked.module, asked.version, os.Getenv(epoch))
	if err != nil {
		return oci.Build{}, err
	}
	platforms, err := oci.Platforms(asked.platforms)
	if err != nil {
		return oci.Build{}, err
	}
	fmt.Printf("building version %s of commit %s (minutes the first time) ...\n", stamp.Version, stamp.Commit)
	made, err := oci.Make(ctx, asked.module, platforms, stamp)
	if err != nil {
		return oci.Build{}, err
	}
	return made, stamp.Unchanged(ctx, asked.module, asked.version, os.Getenv(epoch))
}

func write(ctx context.Context, asked options, made oci.Build) error {
	// What was there before is another build.
	if err := os.RemoveAll(filepath.Join(asked.folder, "docker")); err != nil {
		return fmt.Errorf("emptying the archives' folder: %w", err)
	}
	for _, set := range made.Sets {
		if err := writeSet(ctx, asked, set); err != nil {
			return err
		}
	}
	text, err := output.Lines(made)
	if err != nil {
		return err
	}
	fmt.Print(text)
	if err := os.WriteFile(filepath.Join(asked.folder, "digests.txt"), []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing the digests: %w", err)
	}
	return nil
}

func writeSet(ctx context.Context, asked options, set oci.Set) error {
	if err := output.Layout(filepath.Join(asked.folder, "oci", set.Program), set); err != nil {
		return err
	}
	if _, err := output.Archives(filepath.Join(asked.folder, "docker"), asked.registry.Path, set); err != nil {
		return err
	}
	if asked.registry.Path == "" {
		return nil
	}
	pushed, err := asked.registry.Push(ctx, set)
	if err != nil {
		return err
	}
	fmt.Println("pushed", pushed)
	return nil
}
