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
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/sourcecheck"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
)

// needsSecretError says that a source can't be read in a checkout.
type needsSecretError struct{ name string }

func (e *needsSecretError) Error() string {
	return fmt.Sprintf("not checked: it needs Secret %q", e.name)
}

var errSources = errors.New("some sources are wrong: each is named above, with its add-on and version")

// newStore makes a store for the network that this machine is in; close removes it.
func newStore() (content *store.Store, kinds fetch.Kinds, end func(), err error) {
	kinds = wiring.SourceKinds(outbound.New(outbound.Options{
		AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")},
	}))
	folder, err := os.MkdirTemp("", "cataloguecheck")
	if err != nil {
		return nil, kinds, nil, err
	}
	content, err = store.New(store.Options{Folder: folder, Kinds: kinds})
	return content, kinds, func() {
		_ = content.Close()
		_ = os.RemoveAll(folder)
	}, err
}

// checkSources looks at the source of each version as a seed does, each source once, and tells what is
// wrong.
func checkSources(ctx context.Context, out io.Writer, addons []v1.Addon) error {
	content, kinds, end, err := newStore()
	if err != nil {
		return err
	}
	defer end()
	found, skipped, wrong, known := 0, 0, 0, map[string]error{}
	for i := range addons {
		for j := range addons[i].Versions {
			version := &addons[i].Versions[j]
			key := catalogue.SourceKey(version)
			if key == "" {
				continue
			}
			err, isKnown := known[key]
			if !isKnown {
				err = checkSource(ctx, version, kinds, content)
				known[key] = err
			}
			if err == nil {
				found++
				continue
			}
			fmt.Fprintf(out, "%s %s: %v\n", addons[i].Name, version.Version, err)
			if _, needs := errors.AsType[*needsSecretError](err); needs {
				skipped++
			} else {
				wrong++
			}
		}
	}
	fmt.Fprintf(out, "sources of versions: %d found, %d wrong, %d not checked\n", found, wrong, skipped)
	if wrong > 0 {
		return errSources
	}
	return nil
}

func checkSource(ctx context.Context, version *v1.AddonVersion, kinds fetch.Kinds, content *store.Store) error {
	reference, err := kinds.Reference(version.Source.Kind(), func(name string) (*corev1.Secret, error) {
		return nil, &needsSecretError{name}
	})
	if err != nil {
		return err
	}
	return content.Try(ctx, reference, sourcecheck.Presence(version.Template.Method))
}
