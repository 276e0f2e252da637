package binaries

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// module is a program of a few lines over what others made, in a module of its own: nothing of theirs enters the
// product's go.mod.
type module struct {
	// folder from the checkout's top; its last part is the name of the program.
	folder string
	flags  []string
}

var modules = map[string]module{
	"cert-manager": {folder: "hack/controlplanes/cert-manager"},
	"ocm":          {folder: "hack/ocm", flags: []string{"-ldflags", "-s -w"}},
	"promql":       {folder: "hack/promql"},
}

// FindModule is Find for cert-manager, the agent of Open Cluster Management (ocm), and Prometheus' engine (promql),
// as they are in the checkout.
func FindModule(ctx context.Context, root, cache, name string) (string, error) {
	o, err := moduleNamed(ctx, root, name)
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "modules", o.key, name)
	if _, err := os.Stat(path); err != nil {
		return "", notBuilt(name)
	}
	return path, nil
}

func moduleNamed(ctx context.Context, root, name string) (own, error) {
	found, isKnown := modules[name]
	if !isKnown {
		return own{}, fmt.Errorf("program %q is not in the list of programs", name)
	}
	return newOwn(ctx, filepath.Join(root, found.folder), append(slices.Clone(found.flags), "."))
}

// modulesKept are the built modules that the cache keeps: two of each.
var modulesKept = 2 * len(modules)

// Modules are the names for FindModule and BuildModule, sorted.
func Modules() []string { return slices.Sorted(maps.Keys(modules)) }

// BuildModule builds what FindModule finds, if the cache does not hold it yet.
func BuildModule(ctx context.Context, root, cache, name string, progress io.Writer) error {
	o, err := moduleNamed(ctx, root, name)
	if err != nil {
		return err
	}
	kept, unlock, err := o.lock(filepath.Join(cache, "modules"))
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(filepath.Join(kept, name)); err != nil {
		fmt.Fprintf(progress, "%s: building from source (minutes, once) ...\n", name)
	}
	if err := o.build(ctx, kept); err != nil {
		return err
	}
	removeOldest(filepath.Dir(kept), modulesKept)
	return nil
}

func notBuilt(name string) error {
	return fmt.Errorf("program %q is not built, and no test builds it: run `make binaries NEED=%s`", name, name)
}
