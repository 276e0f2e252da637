package apply

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/trellis-addons/trellis/pkg/fieldsets"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/remote"
)

// What is believed of an object's metadata. Real API servers stay far below.
const (
	// maxVersion is the length of a resource version: those of etcd are numbers.
	maxVersion = 128
	// maxMetadata is how many field managers, owners and finalizers an object has, each; maxFieldSets is the size of all field sets of
	// one object, in bytes: etcd holds none that is larger.
	maxMetadata  = 1000
	maxFieldSets = 2 << 20
	// maxInstallations is how many installations wrote one object.
	maxInstallations = 100
)

// place is where an object was asked for.
type place struct{ namespace, name string }

// check refuses the answer to a call about one object where it is another one, or has what no object has.
func (p place) check(live metav1.Object) error {
	switch {
	case live.GetName() != p.name || live.GetNamespace() != p.namespace:
		return misbehaves("asked for %q in namespace %q it answers with %q in namespace %q",
			p.name, p.namespace, cutText(live.GetName()), cutText(live.GetNamespace()))
	case !isUID(live.GetUID()):
		return misbehaves("the UID of %q has %d characters, or some that none has", p.name, len(live.GetUID()))
	case len(live.GetResourceVersion()) > maxVersion:
		return misbehaves("the resource version of %q has %d characters", p.name, len(live.GetResourceVersion()))
	}
	partial, ok := live.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil // whole objects are looked at for their status
	}
	if len(partial.OwnerReferences) > maxMetadata || len(partial.Finalizers) > maxMetadata {
		return misbehaves("%q has more than %d owners or finalizers", p.name, maxMetadata)
	}
	return checkManaged(partial.ManagedFields, p.name)
}

func checkManaged(managed []metav1.ManagedFieldsEntry, name string) error {
	size, installations := fieldsets.SizeOf(managed), 0
	for i := range managed {
		if _, is := ownership.InstallationOf(managed[i].Manager); is {
			installations++
		}
	}
	if size > maxFieldSets || len(managed) > maxMetadata || installations > maxInstallations {
		return misbehaves("%q has %d field managers with %d bytes of fields", cutText(name), len(managed), size)
	}
	return nil
}

// isUID says whether an answer may have this UID. Objects that aggregated API servers make up have none.
func isUID(uid types.UID) bool { return uid == "" || remote.IsUID(uid) }

// checkedClient reads and writes the metadata of a kind's objects in one namespace, and looks at what comes back.
type checkedClient struct {
	remote    metadata.ResourceInterface
	namespace string
}

func (c checkedClient) Get(ctx context.Context, name string, options metav1.GetOptions) (*metav1.PartialObjectMetadata, error) {
	live, err := c.remote.Get(ctx, name, options)
	return c.checked(name, live, err)
}

func (c checkedClient) Patch(
	ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions,
) (*metav1.PartialObjectMetadata, error) {
	held, release := remote.Hold(ctx)
	defer release()
	live, err := c.remote.Patch(held, name, kind, data, options)
	return c.checked(name, live, err)
}

func (c checkedClient) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return c.remote.Delete(ctx, name, options)
}

func (c checkedClient) checked(name string, live *metav1.PartialObjectMetadata, err error) (*metav1.PartialObjectMetadata, error) {
	if err != nil {
		return nil, err
	}
	if err := (place{namespace: c.namespace, name: name}).check(live); err != nil {
		return nil, err
	}
	return live, nil
}

// readWhole reads one object, and looks at what comes back.
func readWhole(ctx context.Context, client dynamic.ResourceInterface, where place) (*unstructured.Unstructured, error) {
	live, err := client.Get(ctx, where.name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return live, where.check(live)
}
