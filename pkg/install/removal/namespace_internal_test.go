package removal

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
)

// still is a mapper that is never reset.
type still struct{ meta.RESTMapper }

func (still) Reset() {}

// owned are a number of objects, each with its own owner outside of the namespace's lists.
func owned(count int) []metav1.PartialObjectMetadata {
	items := make([]metav1.PartialObjectMetadata, count)
	for i := range items {
		items[i].Name, items[i].UID = fmt.Sprint("item-", i), types.UID(fmt.Sprint("item-", i))
		items[i].OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ConfigMap", Name: fmt.Sprint("owner-", i), UID: types.UID(fmt.Sprint("owner-", i)),
		}}
	}
	return items
}

func emptyCensus() (*census, *metadatafake.FakeMetadataClient) {
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		panic(err)
	}
	client := metadatafake.NewSimpleMetadataClient(scheme)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	target := calls.Target{Metadata: client, Mapper: still{mapper}}
	return &census{target: target, kinds: &calls.Kinds{Mapper: target.Mapper}, namespace: "x", uids: map[types.UID]bool{}}, client
}

var configMapResource = calls.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespaced: true}

// TestANamespaceWithOwnersWithoutEndStays fails if each owner that an object names is read, however many there are; if
// it is read once for each object; or if a namespace is removed of which not everything could be read.
func TestANamespaceWithOwnersWithoutEndStays(t *testing.T) {
	c, client := emptyCensus()
	c.add(configMapResource, owned(5000))
	foreign, err := c.hasForeign(t.Context())
	if err != nil || !foreign || len(client.Actions()) > maxOwners {
		t.Errorf("foreign: %v, %v, after %d calls", foreign, err, len(client.Actions()))
	}

	c, client = emptyCensus()
	for range 10 {
		c.add(configMapResource, owned(20))
	}
	if foreign, err = c.hasForeign(t.Context()); err != nil || foreign || len(client.Actions()) != 20 {
		t.Errorf("20 owners that are gone: foreign: %v, %v, after %d calls", foreign, err, len(client.Actions()))
	}

	c, _ = emptyCensus()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.add(configMapResource, owned(20))
	if foreign, err = c.hasForeign(ctx); !foreign || !errors.Is(err, context.Canceled) {
		t.Errorf("after the pass has ended: foreign: %v, %v", foreign, err)
	}
}

// TestCountingANamespaceEnds fails if counting continues although nothing can change the result, or if it accepts
// impossible objects.
func TestCountingANamespaceEnds(t *testing.T) {
	many := make([]metav1.OwnerReference, calls.MaxMetadata+1)
	for why, items := range map[string][]metav1.PartialObjectMetadata{
		"an object of nobody":        {{ObjectMeta: metav1.ObjectMeta{Name: "a"}}},
		"more owners than there are": {{ObjectMeta: metav1.ObjectMeta{Name: "a", OwnerReferences: many}}},
		"a UID that is none":         {{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: types.UID(make([]byte, 40))}}},
		"more than is counted":       owned(maxCounted + 1),
	} {
		if c, _ := emptyCensus(); !c.add(configMapResource, items) || !c.isDecided() {
			t.Errorf("%s: the count goes on", why)
		}
	}
}
