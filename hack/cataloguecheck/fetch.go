package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring/contents"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/sourcecheck"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/install/rendering"
)

var errSources = errors.New("some sources are wrong: each is named above, with its add-on and version")

// counts are how many versions came out how. Those that are not rendered were found.
type counts struct{ found, wrong, skipped, unrendered int }

func (c *counts) add(err error) {
	_, needs := errors.AsType[*contents.NeedsSecretError](err)
	_, untried := errors.AsType[*rendering.UntriedError](err)
	switch {
	case err == nil:
		c.found++
	case untried:
		c.found++
		c.unrendered++
	case needs:
		c.skipped++
	default:
		c.wrong++
	}
}

// checkSources looks at each version as a seed does, those with equal sources, forms and values once, and
// tells what is wrong.
func checkSources(ctx context.Context, out io.Writer, addons []v1.Addon) error {
	local, err := contents.NewLocal()
	if err != nil {
		return err
	}
	defer local.Close()
	count, known := counts{}, map[string]error{}
	for i := range addons {
		for j := range addons[i].Versions {
			version := &addons[i].Versions[j]
			key := catalogue.SourceKey(version)
			if key == "" {
				continue
			}
			err, isKnown := known[key]
			if !isKnown {
				err = local.Read(ctx, version, func(ctx context.Context, content fetch.Snapshot) error {
					return sourcecheck.Check(ctx, local.Trial, string(addons[i].Name), version, content.FS)
				})
				if _, needs := errors.AsType[*contents.NeedsSecretError](err); needs {
					err = fmt.Errorf("not checked: %w", err)
				}
				known[key] = err
			}
			count.add(err)
			if err != nil {
				fmt.Fprintf(out, "%s %s: %v\n", addons[i].Name, version.Version, err)
			}
		}
	}
	fmt.Fprintf(out, "sources of versions: %d found, %d wrong, %d not checked, %d not rendered\n",
		count.found, count.wrong, count.skipped, count.unrendered)
	if count.wrong > 0 {
		return errSources
	}
	return nil
}
