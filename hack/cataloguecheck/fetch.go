package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/cmd/wiring/renderers"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/sourcecheck"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
	"github.com/trellis-addons/trellis/pkg/render/child"
	"github.com/trellis-addons/trellis/pkg/rendering"
)

// needsSecretError says that a source can't be read in a checkout.
type needsSecretError struct{ name string }

func (e *needsSecretError) Error() string {
	return fmt.Sprintf("not checked: it needs Secret %q", e.name)
}

var errSources = errors.New("some sources are wrong: each is named above, with its add-on and version")

// checker looks at sources through the network that this machine is in.
type checker struct {
	kinds   fetch.Kinds
	content *store.Store
	trial   *rendering.Trial
}

// newChecker makes a checker; end removes what it has.
func newChecker() (made *checker, end func(), err error) {
	kinds := wiring.SourceKinds(outbound.New(outbound.Options{
		AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")},
	}))
	folder, err := os.MkdirTemp("", "cataloguecheck")
	if err != nil {
		return nil, nil, err
	}
	content, err := store.New(store.Options{Folder: folder, Kinds: kinds})
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(folder))
	}
	trial, pool := renderers.Trial(child.Options{Memory: child.DefaultMemory / 2}) // as a seed does
	return &checker{kinds, content, trial}, func() {
		pool.Close()
		_ = content.Close()
		_ = os.RemoveAll(folder)
	}, nil
}

// counts are how many versions came out how. Those that are not rendered were found.
type counts struct{ found, wrong, skipped, unrendered int }

func (c *counts) add(err error) {
	_, needs := errors.AsType[*needsSecretError](err)
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
	looks, end, err := newChecker()
	if err != nil {
		return err
	}
	defer end()
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
				err = looks.check(ctx, string(addons[i].Name), version)
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

func (c *checker) check(ctx context.Context, addon string, version *v1.AddonVersion) error {
	reference, err := c.kinds.Reference(version.Source.Kind(), func(name string) (*corev1.Secret, error) {
		return nil, &needsSecretError{name}
	})
	if err != nil {
		return err
	}
	return c.content.Try(ctx, reference, func(ctx context.Context, content fetch.Snapshot) error {
		return sourcecheck.Check(ctx, c.trial, addon, version, content.FS)
	})
}
