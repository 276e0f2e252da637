// Command reference writes docs/reference out of the code: kinds, flags, metrics, events, conditions, labels and annotations, rights.
// `make generate` runs it.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/trellis-addons/trellis/test/binaries"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	root, err := binaries.Root()
	if err != nil {
		return err
	}
	made, err := pages(root)
	if err != nil {
		return err
	}
	if made["flags.md"], err = flagsPage(ctx, root); err != nil {
		return err
	}
	folder := filepath.Join(root, "docs", "reference")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, text := range made {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// pages are all pages but that of the flags, which takes built programs, by their file.
func pages(root string) (map[string]string, error) {
	made := map[string]string{}
	for name, page := range map[string]func(root string) (string, error){
		"kinds.md": kindsPage, "metrics.md": metricsPage, "events.md": eventsPage, "conditions.md": conditionsPage, "names.md": namesPage,
		"rbac.md": rbacPage, "commands.md": commandsPage,
	} {
		text, err := page(root)
		if err != nil {
			return nil, fmt.Errorf("page %q: %w", name, err)
		}
		made[name] = text
	}
	return made, nil
}
