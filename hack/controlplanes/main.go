// Command controlplanes builds what demo, sandbox and tests run, and shows its progress: groups of control-plane programs by
// name (base without any), and with -own a program of this checkout.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/binaries/download"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		if ctx.Err() != nil {
			err = errInterrupted
		}
		fmt.Fprintln(os.Stderr, "controlplanes:", err)
		os.Exit(1)
	}
}

var errInterrupted = errors.New("interrupted; the next run continues")

func run(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("controlplanes", flag.ContinueOnError)
	downloads := flags.Bool("download", false, "download released programs whose checksums are known")
	sums := flags.Bool("sums", false, "read the published checksums into the list, and exit")
	own := flags.String("own", "", "also build this folder of the checkout into .cache/run")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	root, err := binaries.Root()
	if err != nil {
		return err
	}
	cache, err := binaries.Cache()
	if err != nil {
		return err
	}
	list := download.ListOf(root)
	if *sums && flags.NArg() > 0 {
		return fmt.Errorf("-sums takes no groups, and got %s", strings.Join(flags.Args(), " "))
	}
	if *sums {
		return download.WriteSums(ctx, os.Stdout, list)
	}
	needs, modules, err := needsOf(flags.Args())
	if err != nil {
		return err
	}
	for _, name := range modules {
		if err := binaries.BuildModule(ctx, root, cache, name, os.Stdout); err != nil {
			return err
		}
	}
	builder := binaries.Builder{Root: root, Cache: cache, Out: os.Stdout}
	if *downloads {
		if builder.Download, err = download.From(list, os.Stdout); err != nil {
			return err
		}
	}
	if err := builder.Build(ctx, needs...); err != nil {
		return err
	}
	if *own == "" {
		return nil
	}
	return binaries.ShowOwn(ctx, os.Stdout, root, filepath.Join(root, ".cache", "run"), *own)
}

// needsOf tells groups and modules apart.
func needsOf(names []string) (needs []binaries.Need, modules []string, err error) {
	if len(names) == 0 {
		return []binaries.Need{binaries.Base}, nil, nil
	}
	for _, name := range names {
		switch {
		case slices.Contains(binaries.Modules(), name):
			modules = append(modules, name)
		case slices.Contains(binaries.Needs(), binaries.Need(name)):
			needs = append(needs, binaries.Need(name))
		default:
			return nil, nil, fmt.Errorf("unknown group %q: use some of %v and %v", name, binaries.Needs(), binaries.Modules())
		}
	}
	return needs, modules, nil
}
