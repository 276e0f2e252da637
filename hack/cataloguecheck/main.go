// Command cataloguecheck reads the folder of a catalogue repository as the master's manager does, and
// tells what is wrong with it before it is committed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring/renderers"
	"github.com/trellis-addons/trellis/pkg/render/child"
	"github.com/trellis-addons/trellis/pkg/serve/documents"
)

func main() {
	child.Serve(renderers.All())
	kind := flag.String("type", string(v1.CatalogueCustom), "the type of the catalogue that owns the folder: Custom or Core")
	folder := flag.String("folder", ".", "the folder, as spec.git.path names it")
	sources := flag.Bool("fetch", false, "look at the source of each version too, with this machine's network, and render it")
	flag.Parse()
	addons, err := run(os.Stdout, os.DirFS(*folder), v1.CatalogueType(*kind))
	if err == nil && *sources {
		err = checkSources(context.Background(), os.Stdout, addons)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "cataloguecheck: %s: %v\n", *folder, err)
		os.Exit(1)
	}
}

// errRefused is the end of a folder that would be refused; what is wrong was told before.
var errRefused = errors.New("a commit of this would not be taken")

// run tells what the folder has, which it returns, or each thing that is wrong with it, one a line with
// its place.
func run(out io.Writer, folder fs.FS, kind v1.CatalogueType) ([]v1.Addon, error) {
	if !slices.Contains([]v1.CatalogueType{v1.CatalogueCustom, v1.CatalogueCore}, kind) {
		return nil, fmt.Errorf("there is no type %q of catalogues: Custom or Core", kind)
	}
	content, err := documents.Read(context.Background(), folder)
	if err == nil {
		err = content.Check(context.Background(), kind)
	}
	if refused, ok := errors.AsType[*documents.InvalidError](err); ok {
		return nil, report(out, refused.Problems)
	}
	if err != nil {
		return nil, err
	}
	if len(content.Addons) == 0 {
		return nil, errors.New("there are no add-ons: is it the right folder?")
	}
	for _, addon := range content.Addons {
		var versions []string
		for _, version := range addon.Versions {
			versions = append(versions, version.Version)
		}
		fmt.Fprintf(out, "%s %s\n", addon.Name, strings.Join(versions, ", "))
	}
	return content.Addons, nil
}

func report(out io.Writer, problems []documents.Problem) error {
	for _, problem := range problems {
		fmt.Fprintln(out, problem)
	}
	return errRefused
}
