package loop

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/budget"
)

// NewClient makes clients for managers and clusters that replace no catalogue, set or installation by a stub of it.
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
			return fmt.Errorf("%q in namespace %q is in memory without its content, and can't be replaced by that",
				object.GetName(), object.GetNamespace())
		}
	}
	return g.Client.Update(ctx, object, options...)
}
