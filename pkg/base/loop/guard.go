package loop

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/budget"
)

// NewClient creates a client for managers and clusters. It refuses to replace a catalogue, set or installation by a
// stub of it.
func NewClient(config *rest.Config, options client.Options) (client.Client, error) {
	made, err := client.New(config, options)
	return guarded{made}, err
}

type guarded struct{ client.Client }

// Update implements client.Client.
func (g guarded) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	switch object.(type) {
	case *v1.AddonCatalogue, *v1.AddonSet, *v1.AddonInstallation:
		if budget.IsStub(object) {
			return fmt.Errorf("%q in namespace %q is cached without its content, so it can't be updated from the cache",
				object.GetName(), object.GetNamespace())
		}
	}
	return g.Client.Update(ctx, object, options...)
}
