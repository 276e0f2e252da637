// Command docs builds the pages of the checkout as a site: `make docs`. The site works as files, with a search, and makes no request to
// another host. ADR 138 compares it with Hugo.
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
	out := flag.String("out", "bin/docs", "the folder of the site; a previous site in it is removed")
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
	if err := removePrevious(out); err != nil {
		return err
	}
	if err := made.write(out); err != nil {
		return err
	}
	fmt.Printf("%d pages in %s: open %s/index.html\n", len(made.pages), out, out)
	return nil
}

// removePrevious removes the site that an earlier run wrote into a folder. A folder with other files stays, and is an error.
func removePrevious(out string) error {
	entries, err := os.ReadDir(out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Stat(filepath.Join(out, indexFile)); err != nil && len(entries) > 0 {
		return fmt.Errorf("folder %q has files that are no previous site: name another folder", out)
	}
	return os.RemoveAll(out)
}
