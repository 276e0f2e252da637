package calls

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
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
	// MaxVersion is the length of a resource version: those of etcd are numbers.
	MaxVersion = 128
	// MaxMetadata is how many field managers, owners and finalizers an object has, each; maxFieldSets is the size of all field sets of
	// one object, in bytes: etcd holds none that is larger.
	MaxMetadata  = 1000
	maxFieldSets = 2 << 20
	// maxInstallations is how many installations wrote one object.
	maxInstallations = 100
)

// Place is where an object was asked for.
type Place struct{ Namespace, Name string }

// Check refuses the answer to a call about one object where it is another one, or has what no object has.
func (p Place) Check(live metav1.Object) error {
	switch {
	case live.GetName() != p.Name || live.GetNamespace() != p.Namespace:
		return Misbehaves("asked for %q in namespace %q it answers with %q in namespace %q",
			p.Name, p.Namespace, CutText(live.GetName()), CutText(live.GetNamespace()))
	case !IsUID(live.GetUID()):
		return Misbehaves("the UID of %q has %d characters, or some that none has", p.Name, len(live.GetUID()))
	case len(live.GetResourceVersion()) > MaxVersion:
		return Misbehaves("the resource version of %q has %d characters", p.Name, len(live.GetResourceVersion()))
	}
	partial, ok := live.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil // whole objects are looked at for their status
	}
	if len(partial.OwnerReferences) > MaxMetadata || len(partial.Finalizers) > MaxMetadata {
		return Misbehaves("%q has more than %d owners or finalizers", p.Name, MaxMetadata)
	}
	return CheckManaged(partial.ManagedFields, p.Name)
}

// CheckManaged refuses field managers of an object as none has them.
func CheckManaged(managed []metav1.ManagedFieldsEntry, name string) error {
	size, installations := fieldsets.SizeOf(managed), 0
	for i := range managed {
		if _, is := ownership.InstallationOf(managed[i].Manager); is {
			installations++
		}
	}
	if size > maxFieldSets || len(managed) > MaxMetadata || installations > maxInstallations {
		return Misbehaves("%q has %d field managers with %d bytes of fields", CutText(name), len(managed), size)
	}
	return nil
}

// IsUID says whether an answer may have this UID. Objects that aggregated API servers make up have none.
func IsUID(uid types.UID) bool { return uid == "" || remote.IsUID(uid) }

// Client reads and writes the metadata of a kind's objects in one namespace, and checks what comes back.
type Client struct {
	remote    metadata.ResourceInterface
	namespace string
}

// Read gives the metadata of an object; nil where there is none.
func (c Client) Read(ctx context.Context, key ownership.Key) (*metav1.PartialObjectMetadata, error) {
	live, err := c.Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %q: %w", key, err)
	}
	return live, nil
}

// Get gives the metadata of the object of a name.
func (c Client) Get(ctx context.Context, name string, options metav1.GetOptions) (*metav1.PartialObjectMetadata, error) {
	live, err := c.remote.Get(ctx, name, options)
	return c.checked(name, live, err)
}

// Patch writes to the object of a name, and gives its metadata after that.
func (c Client) Patch(
	ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions,
) (*metav1.PartialObjectMetadata, error) {
	held, release := remote.Hold(ctx)
	defer release()
	live, err := c.remote.Patch(held, name, kind, data, options)
	return c.checked(name, live, err)
}

func (c Client) checked(name string, live *metav1.PartialObjectMetadata, err error) (*metav1.PartialObjectMetadata, error) {
	if err != nil {
		return nil, err
	}
	if err := (Place{Namespace: c.namespace, Name: name}).Check(live); err != nil {
		return nil, err
	}
	return live, nil
}

// ReadWhole reads one object, and checks what comes back.
func ReadWhole(ctx context.Context, client dynamic.ResourceInterface, where Place) (*unstructured.Unstructured, error) {
	live, err := client.Get(ctx, where.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return live, where.Check(live)
}

// DeleteObject deletes the very object of an entry, with what belongs to it in the background. One that is gone, or was
// replaced by another, is deleted.
func DeleteObject(ctx context.Context, client Client, entry ownership.Entry) error {
	background := metav1.DeletePropagationBackground
	err := client.remote.Delete(ctx, entry.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &entry.UID}, PropagationPolicy: &background,
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("deleting %q: %w", entry.Key, err)
}

// longestName is that of every kind which Kubernetes itself has.
const longestName = 253

// NameProblem says whether a name from a user cluster can't be part of a path, or is longer than any is.
func NameProblem(key ownership.Key) bool {
	if len(key.Name) > longestName || len(key.Namespace) > content.DNS1123LabelMaxLength {
		return true
	}
	return len(content.IsPathSegmentName(key.Name)) > 0 || key.Namespace != "" && len(content.IsPathSegmentName(key.Namespace)) > 0
}

// ClientOf is for the objects of a kind, in a namespace where the kind has some.
func ClientOf(target Target, where Resource, namespace string) Client {
	if where.Namespaced {
		return Client{target.Metadata.Resource(where.GroupVersionResource).Namespace(namespace), namespace}
	}
	return Client{remote: target.Metadata.Resource(where.GroupVersionResource)}
}

// MisbehavesError says that a user cluster's API server answers as none does. It belongs to a tenant, so nothing of such an answer
// is kept, and nothing is concluded from it: an object that it does not show is not gone.
type MisbehavesError = remote.MisbehavesError

// Misbehaves is the error of an answer that no API server gives.
func Misbehaves(format string, about ...any) error {
	return &MisbehavesError{Did: fmt.Sprintf(format, about...)}
}

// IsMisbehaviour says whether an error is of that kind.
func IsMisbehaviour(err error) bool {
	_, is := errors.AsType[*MisbehavesError](err)
	return is
}
