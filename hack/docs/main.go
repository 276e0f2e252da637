// Command docs builds the pages of the checkout as a site: `make docs`. The site is files alone, with a search, and asks no other host for
// anything.
package main

import (
	"flag"
	"fmt"
	"os"

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
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := made.write(out); err != nil {
		return err
	}
	fmt.Printf("%d pages in %s: open %s/index.html\n", len(made.pages), out, out)
	return nil
}
