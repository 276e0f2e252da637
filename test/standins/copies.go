package standins

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/test/expect"
)

// seedName is the seed that copies are for.
const seedName = "seed"

// gateEvery is how often a copy is looked at for another revision.
const gateEvery = 100 * time.Millisecond

// Copies plays the distributor to one seed: merged catalogues, copies of AddonSets, and gates. It knows no key, so there are no marks.
type Copies struct {
	// Client of the test, which no gate sees.
	Client client.Client
	// Namespace of merged catalogues.
	Namespace string
}

// Publish makes or changes the merged catalogue of an add-on.
func (c Copies) Publish(t testing.TB, name string, versions ...v1.AddonVersion) {
	t.Helper()
	spec := v1.AddonCatalogueSpec{Type: v1.CatalogueCustom, Addons: []v1.Addon{{Name: v1.AddonName(name), Versions: versions}}}
	found := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name}}
	c.put(t, found, func() error {
		digest, err := catalogue.Digest(spec)
		found.Labels = map[string]string{v1.LabelRole: v1.RoleMerged}
		found.Annotations = map[string]string{v1.AnnotationKKPVersion: "v2.31.0", v1.AnnotationDigest: digest}
		found.Spec = spec
		return err
	})
}

// Put makes or changes the copy of a set.
func (c Copies) Put(t testing.TB, name string, spec v1.AddonSetSpec) {
	t.Helper()
	found := &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name}}
	c.put(t, found, func() error {
		found.Labels = map[string]string{v1.LabelRole: v1.RoleCopy, v1.LabelManagedBy: "distributor"}
		if found.Annotations == nil {
			found.Annotations = map[string]string{}
		}
		digest, err := catalogue.SetDigest(&spec)
		found.Annotations[v1.AnnotationDigest], found.Annotations[v1.AnnotationSeed] = digest, seedName
		found.Spec = *spec.DeepCopy()
		return err
	})
}

// Edit changes the spec of a copy.
func (c Copies) Edit(t testing.TB, name string, edit func(*v1.AddonSetSpec)) {
	t.Helper()
	spec := c.Get(t, name).Spec
	edit(&spec)
	c.Put(t, name, spec)
}

// Get reads a copy.
func (c Copies) Get(t testing.TB, name string) *v1.AddonSet {
	t.Helper()
	found := &v1.AddonSet{}
	expect.Get(t, c.Client, client.ObjectKey{Namespace: c.Namespace, Name: name}, found)
	return found
}

// Annotate sets an annotation of a copy.
func (c Copies) Annotate(t testing.TB, name, annotation, value string) {
	t.Helper()
	expect.NoError(t, c.annotate(t.Context(), name, annotation, value))
}

// Delete deletes a copy, as for a set whose deletion is confirmed.
func (c Copies) Delete(t testing.TB, name string) {
	t.Helper()
	expect.Delete(t, c.Client, &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name}})
}

// KeepOpen opens so many groups of each revision that the seed says, until the end of the test: the only seed's own order,
// places and failures are all that counts then.
func (c Copies) KeepOpen(t testing.TB, name string, groups int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(gateEvery):
				c.open(ctx, name, groups)
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		ended.Wait()
	})
}

// open opens the gate of the present revision. What fails is tried again.
func (c Copies) open(ctx context.Context, name string, groups int) {
	found := &v1.AddonSet{}
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, found); err != nil || found.Status.Revision == "" {
		return
	}
	if gate := fmt.Sprintf("%s/%d", found.Status.Revision, groups); found.Annotations[v1.AnnotationGate] != gate {
		_ = c.annotate(ctx, name, v1.AnnotationGate, gate)
	}
}

func (c Copies) annotate(ctx context.Context, name, annotation, value string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, annotation, value)
	set := &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name}}
	return c.Client.Patch(ctx, set, client.RawPatch("application/merge-patch+json", patch))
}

// put makes an object, or has it changed.
func (c Copies) put(t testing.TB, object client.Object, change func() error) {
	t.Helper()
	err := expect.PastConflicts(t.Context(), func() error {
		err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if refused := change(); refused != nil {
			return refused
		}
		if apierrors.IsNotFound(err) {
			return c.Client.Create(t.Context(), object)
		}
		return c.Client.Update(t.Context(), object)
	})
	if err != nil {
		t.Fatalf("writing %T %q: %v", object, object.GetName(), err)
	}
}
