// Package contents lists the kinds of source that are served, and reads sources with the network of a person's machine,
// for tools without a seed. Add further kinds here.
package contents

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring/renderers"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/git"
	"github.com/trellis-addons/trellis/pkg/fetch/helmrepo"
	"github.com/trellis-addons/trellis/pkg/fetch/image"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
	"github.com/trellis-addons/trellis/pkg/install/rendering"
	"github.com/trellis-addons/trellis/pkg/render/child"
)

// Kinds are the kinds of source that are served.
func Kinds(network *outbound.Network) fetch.Kinds {
	return fetch.NewKinds(fetch.Serve(git.New(network)), fetch.Serve(image.New(network)), fetch.Serve(helmrepo.New(network)))
}

// NeedsSecretError says that a source can't be read without a seed.
type NeedsSecretError struct{ Name string }

func (e *NeedsSecretError) Error() string { return fmt.Sprintf("it needs Secret %q", e.Name) }

// Local reads and renders versions on a person's machine, in child processes: main has to begin with child.Serve.
// On Windows it renders in its own process, without their limits. Close
// removes what it has.
type Local struct {
	*rendering.Trial
	kinds  fetch.Kinds
	store  *store.Store
	pool   *child.Pool
	folder string
}

// anywhere are all addresses.
var anywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

// NewLocal makes a Local, which reads from any address.
func NewLocal() (*Local, error) {
	kinds := Kinds(outbound.New(outbound.Options{AllowCIDRs: anywhere}))
	folder, err := os.MkdirTemp("", "trellis-content-")
	if err != nil {
		return nil, err
	}
	content, err := store.New(store.Options{Folder: folder, Kinds: kinds})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	trial, pool := renderers.Trial(child.Options{Memory: child.DefaultMemory / 2}) // as a seed does
	if runtime.GOOS == "windows" {                                                 // no process there is started with pipes beside its streams
		all := renderers.All()
		trial.Methods, trial.Values = all.Methods, all.Values
	}
	return &Local{Trial: trial, kinds: kinds, store: content, pool: pool, folder: folder}, nil
}

// Read has a function read the content of a version's source. Errors: *NeedsSecretError, and those of package fetch and of
// the function.
func (l *Local) Read(ctx context.Context, version *v1.AddonVersion, look func(context.Context, fetch.Snapshot) error) error {
	reference, err := l.kinds.Reference(version.Source.Kind(), func(name string) (*corev1.Secret, error) {
		return nil, &NeedsSecretError{name}
	})
	if err != nil {
		return err
	}
	return l.store.Try(ctx, reference, look)
}

// Close ends its processes and removes its files.
func (l *Local) Close() {
	l.pool.Close()
	_ = l.store.Close()
	_ = os.RemoveAll(l.folder)
}
