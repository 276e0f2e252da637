package apply

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
)

// still is a mapper that is never reset.
type still struct{ meta.RESTMapper }

func (still) Reset() {}

// owned are so many objects, each with an owner of its own outside of the namespace's lists.
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
	target := Target{Metadata: client, Mapper: still{mapper}}
	return &census{target: target, kinds: &kinds{mapper: target.Mapper}, namespace: "x", uids: map[types.UID]bool{}}, client
}

var configMapResource = resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, namespaced: true}

// Red when each owner that an object names is asked for, however many there are; when it is asked for once for each object; or
// when a namespace goes of which not everything could be looked at.
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

// Red when counting goes on where nothing can change the answer any more, or when it takes what no object has.
func TestCountingANamespaceEnds(t *testing.T) {
	many := make([]metav1.OwnerReference, maxMetadata+1)
	for why, items := range map[string][]metav1.PartialObjectMetadata{
		"an object of nobody":        {{ObjectMeta: metav1.ObjectMeta{Name: "a"}}},
		"more owners than there are": {{ObjectMeta: metav1.ObjectMeta{Name: "a", OwnerReferences: many}}},
		"a UID that is none":         {{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: types.UID(make([]byte, 40))}}},
		"more than is counted":       owned(maxCounted + 1),
	} {
		if c, _ := emptyCensus(); !c.add(configMapResource, items) || !c.isSettled() {
			t.Errorf("%s: the count goes on", why)
		}
	}
}

// Red when field sets are kept whole without end, or when one that is kept by its sum is not told from another.
func TestFieldSetsOfListsAreKeptUpToALimit(t *testing.T) {
	r := &round{kept: newAllowance(1 << 20), whole: newAllowance(1000)}
	fields := []byte(`{"f:data":{"f:color":{}}}`)
	summed, kept := 0, sizes{}
	for range 100 {
		seen, err := r.keep(sighting{fields: fields}, 10, &kept)
		if err != nil {
			t.Fatal(err)
		}
		if lost := seen.lost(fields); len(lost) > 0 {
			t.Errorf("nothing changed, and %v are lost", lost)
		}
		if lost := seen.lost([]byte(`{"f:data":{"f:shape":{}}}`)); len(lost) != 1 {
			t.Errorf("a field changed, and %v are lost", lost)
		}
		if seen.sum != nil {
			summed++
		}
	}
	if summed != 60 || kept.fields != 1000 {
		t.Errorf("%d of 100 sets are kept by their sum, %d bytes whole", summed, kept.fields)
	}
	var err error
	for range 1 << 20 {
		if _, err = r.keep(sighting{}, 10, &kept); err != nil {
			break
		}
	}
	if !isMisbehaviour(err) || kept.all > 1<<20 {
		t.Errorf("%d bytes are kept: %v", kept.all, err)
	}
}
