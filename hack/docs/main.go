// Command docs builds the pages of the checkout as a site: `make docs`. The site is files alone, with a search, and asks no other host for
// anything.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/trellis-addons/trellis/test/binaries"
)

func main() {
	out := flag.String("out", "bin/docs", "folder of the site, which is made anew")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

func run(out string) error {
	root, err := binaries.Root()
	if err != nil {
		return err
	}
	made, err := read(root)
	if err != nil {
		return err
	}
	if err := makeRoom(out); err != nil {
		return err
	}
	if err := made.write(out); err != nil {
		return err
	}
	fmt.Printf("%d pages in %s: open %s/index.html\n", len(made.pages), out, out)
	return nil
}

// makeRoom removes the site of before. A folder with anything else stays.
func makeRoom(out string) error {
	entries, err := os.ReadDir(out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Stat(filepath.Join(out, indexFile)); err != nil && len(entries) > 0 {
		return fmt.Errorf("folder %q has something else than a site of before: name another", out)
	}
	return os.RemoveAll(out)
}
