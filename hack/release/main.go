package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/trellis-addons/trellis/hack/images/archive"
	"github.com/trellis-addons/trellis/hack/images/checkout"
	"github.com/trellis-addons/trellis/hack/images/oci"
	"github.com/trellis-addons/trellis/hack/images/output"
	"github.com/trellis-addons/trellis/hack/release/plugin"
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
	flag.StringVar(&asked.folder, "out", "bin/release", "the folder below which one of the version's name is written")
	flag.StringVar(&asked.platforms, "platforms", "linux/amd64,linux/arm64", "the images' platforms, comma-separated")
	flag.StringVar(&asked.version, "version", "", "the version; empty: the tag of the commit, or one made of its date and id")
	flag.StringVar(&asked.registry.Path, "push", "", "push the images to this registry, as host/path, and have the charts name it")
	flag.BoolVar(&asked.registry.Insecure, "insecure", false, "push over plain http, for labs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	folder, err := run(ctx, asked)
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
	fmt.Println(folder)
}

// run makes a release, and gives its folder.
func run(ctx context.Context, asked options) (string, error) {
	if err := asked.registry.Check(); err != nil {
		return "", err
	}
	stamp, err := checkout.Read(ctx, asked.module, asked.version, os.Getenv(epoch))
	if err != nil {
		return "", err
	}
	platforms, err := oci.Platforms(asked.platforms)
	if err != nil {
		return "", err
	}
	// What people wrote is looked at before anything is built for minutes.
	words, err := wordsOf(asked.module, stamp)
	if err != nil {
		return "", err
	}
	fmt.Printf("building version %s of commit %s (minutes the first time) ...\n", stamp.Version, stamp.Commit)
	build, err := oci.Make(ctx, asked.module, platforms, stamp)
	if err != nil {
		return "", err
	}
	license, err := os.ReadFile(filepath.Join(asked.module, "LICENSE"))
	if err != nil {
		return "", fmt.Errorf("reading the licence: %w", err)
	}
	tools, err := plugin.Make(ctx, asked.module, stamp, archive.File{Name: "LICENSE", Data: license})
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(asked.folder, 0o755); err != nil {
		return "", fmt.Errorf("making the folder of releases: %w", err)
	}
	// A release is there as a whole or not at all.
	unfinished, err := os.MkdirTemp(asked.folder, ".unfinished-")
	if err != nil {
		return "", fmt.Errorf("making a folder to write to: %w", err)
	}
	defer os.RemoveAll(unfinished)
	made := release{module: asked.module, folder: unfinished, registry: asked.registry.Path, build: build, words: words, plugin: tools}
	if err := made.write(); err != nil {
		return "", err
	}
	if err := stamp.Unchanged(ctx, asked.module, asked.version, os.Getenv(epoch)); err != nil {
		return "", err
	}
	if err := push(ctx, asked.registry, build); err != nil {
		return "", err
	}
	folder := filepath.Join(asked.folder, stamp.Version)
	if err := os.RemoveAll(folder); err != nil {
		return "", fmt.Errorf("removing what was built before: %w", err)
	}
	if err := os.Rename(unfinished, folder); err != nil {
		return "", fmt.Errorf("naming the release: %w", err)
	}
	return folder, os.Chmod(folder, 0o755)
}

func push(ctx context.Context, to output.Registry, build oci.Build) error {
	if to.Path == "" {
		return nil
	}
	for _, set := range build.Sets {
		pushed, err := to.Push(ctx, set)
		if err != nil {
			return err
		}
		fmt.Println("pushed", pushed)
	}
	return nil
}
