package calls

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/trellis-addons/trellis/pkg/clusters/fieldsets"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/clusters/remote"
)

// Limits of an object's metadata, far above those of real API servers.
const (
	// MaxVersion is the length of a resource version: etcd's are numbers.
	MaxVersion = 128
	// MaxMetadata is for field managers, owners and finalizers each; maxFieldSets for all field sets of one object, in
	// bytes: etcd stores no larger ones.
	MaxMetadata      = 1000
	maxFieldSets     = 2 << 20
	maxInstallations = 100
)

// Place is the identity of the object of a call.
type Place struct{ Namespace, Name string }

// Check refuses an answer about another object, or one that exceeds the limits.
func (p Place) Check(live metav1.Object) error {
	switch {
	case live.GetName() != p.Name || live.GetNamespace() != p.Namespace:
		return Misbehaves("it answers a request for %q in namespace %q with %q in namespace %q",
			p.Name, p.Namespace, CutText(live.GetName()), CutText(live.GetNamespace()))
	case !IsUID(live.GetUID()):
		return Misbehaves("the UID of %q has %d characters, or invalid characters", p.Name, len(live.GetUID()))
	case len(live.GetResourceVersion()) > MaxVersion:
		return Misbehaves("the resource version of %q has %d characters", p.Name, len(live.GetResourceVersion()))
	}
	partial, ok := live.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil // whole objects are read for their status
	}
	if len(partial.OwnerReferences) > MaxMetadata || len(partial.Finalizers) > MaxMetadata {
		return Misbehaves("%q has more than %d owners or finalizers", p.Name, MaxMetadata)
	}
	return CheckManaged(partial.ManagedFields, p.Name)
}

// CheckManaged refuses field managers that exceed the limits.
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

// IsUID also accepts "": objects of aggregated API servers may have none.
func IsUID(uid types.UID) bool { return uid == "" || remote.IsUID(uid) }

// Client reads and writes metadata of one kind and namespace, and checks the answers.
type Client struct {
	remote    metadata.ResourceInterface
	namespace string
	// dryRun is an option of all writes; nil: they are made.
	dryRun []string
}

// Read returns the metadata of an object; nil if there is none.
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

// ReadNamed returns the metadata of those objects that exist, by name. It reads several by one list, or one by one if
// the list has more than a page or is too large. The error is NotFound if the kind is not served.
func (c Client) ReadNamed(ctx context.Context, keys []ownership.Key) (map[string]*metav1.PartialObjectMetadata, error) {
	if len(keys) > 1 {
		page, err := c.remote.List(ctx, metav1.ListOptions{Limit: pageSize})
		switch {
		case err == nil && page.Continue == "":
			return c.named(page.Items, keys)
		case err != nil && !IsMisbehaviour(err):
			return nil, err
		}
	}
	var lock sync.Mutex
	found := map[string]*metav1.PartialObjectMetadata{}
	err := Each(ctx, keys, func(ctx context.Context, key ownership.Key) error {
		live, err := c.Get(ctx, key.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
			return nil // the API server knows the path
		}
		lock.Lock()
		defer lock.Unlock()
		found[key.Name] = live
		return err
	})
	return found, err
}

// named returns the requested ones of the listed objects.
func (c Client) named(listed []metav1.PartialObjectMetadata, keys []ownership.Key) (map[string]*metav1.PartialObjectMetadata, error) {
	all := make(map[string]*metav1.PartialObjectMetadata, len(listed))
	for i := range listed {
		all[listed[i].Name] = &listed[i]
	}
	found := map[string]*metav1.PartialObjectMetadata{}
	for _, key := range keys {
		live := all[key.Name]
		if live == nil {
			continue
		}
		if err := (Place{Namespace: c.namespace, Name: key.Name}).Check(live); err != nil {
			return nil, err
		}
		found[key.Name] = live
	}
	return found, nil
}

// Get returns the metadata of the object of a name.
func (c Client) Get(ctx context.Context, name string, options metav1.GetOptions) (*metav1.PartialObjectMetadata, error) {
	live, err := c.remote.Get(ctx, name, options)
	return c.checked(name, live, err)
}

// Patch writes to the object of a name, and returns its new metadata.
func (c Client) Patch(
	ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions,
) (*metav1.PartialObjectMetadata, error) {
	held, release := remote.Hold(ctx)
	defer release()
	if c.dryRun != nil {
		options.DryRun = c.dryRun
	}
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

// ReadWhole reads one object, and checks the answer.
func ReadWhole(ctx context.Context, client dynamic.ResourceInterface, where Place) (*unstructured.Unstructured, error) {
	live, err := client.Get(ctx, where.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return live, where.Check(live)
}

// DynamicOf returns a client for whole objects of a kind, in a namespace if it is namespaced.
func DynamicOf(target Target, where Resource, namespace string) dynamic.ResourceInterface {
	if of := target.Dynamic.Resource(where.GroupVersionResource); !where.Namespaced {
		return of
	}
	return target.Dynamic.Resource(where.GroupVersionResource).Namespace(namespace)
}

// DeleteObject deletes the entry's UID, dependents in the background. The object may already be deleted or replaced.
func DeleteObject(ctx context.Context, client Client, entry ownership.Entry) error {
	background := metav1.DeletePropagationBackground
	err := client.remote.Delete(ctx, entry.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &entry.UID}, PropagationPolicy: &background, DryRun: client.dryRun,
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("deleting %q: %w", entry.Key, err)
}

const longestName = 253

// NameProblem says whether a name from a user cluster is too long or can't be part of a path.
func NameProblem(key ownership.Key) bool {
	if len(key.Name) > longestName || len(key.Namespace) > content.DNS1123LabelMaxLength {
		return true
	}
	return len(content.IsPathSegmentName(key.Name)) > 0 || key.Namespace != "" && len(content.IsPathSegmentName(key.Namespace)) > 0
}

// ClientOf returns a client for the objects of a kind, in a namespace if it is namespaced.
func ClientOf(target Target, where Resource, namespace string) Client {
	made := Client{remote: target.Metadata.Resource(where.GroupVersionResource)}
	if where.Namespaced {
		made.remote, made.namespace = target.Metadata.Resource(where.GroupVersionResource).Namespace(namespace), namespace
	}
	if target.DryRun {
		made.dryRun = []string{metav1.DryRunAll}
	}
	return made
}

// MisbehavesError says that a user cluster's API server sent an impossible answer. The server belongs to a tenant, so
// no conclusion is drawn: an object that it does not show may still exist.
type MisbehavesError = remote.MisbehavesError

// Misbehaves is the error of an impossible answer.
func Misbehaves(format string, about ...any) error {
	return &MisbehavesError{Did: fmt.Sprintf(format, about...)}
}

// IsMisbehaviour says whether an error is of that kind.
func IsMisbehaviour(err error) bool {
	_, is := errors.AsType[*MisbehavesError](err)
	return is
}
