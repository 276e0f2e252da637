package crds

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

const (
	// things are more than a page; cut is where a run is cut off.
	things, cut = perPage + 1, 100
	crdName     = "things.example.com"
)

var (
	older = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	newer = schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Thing"}
)

// thingsCRD has these versions.
func thingsCRD(t *testing.T, versions string) *unstructured.Unstructured {
	t.Helper()
	made := &unstructured.Unstructured{}
	const form = "schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}"
	text := strings.ReplaceAll(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.com}, spec: {
		group: example.com, names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}, scope: Namespaced, versions: [`+versions+"]}}",
		"FORM", form)
	if err := yaml.Unmarshal([]byte(text), &made.Object); err != nil {
		t.Fatal(err)
	}
	return made
}

// TestWhatIsStoredInAnOlderVersionIsRewritten: a kind gets a second version, which is stored from then on, a run over its objects is cut off,
// the next one brings it to its end, and the first version is retired and goes. Red when an object stays stored in the first version, when
// a run that was cut off says that none is, when the next one writes again what was rewritten, and when the first version never goes.
func TestWhatIsStoredInAnOlderVersionIsRewritten(t *testing.T) {
	log.SetLogger(logr.Discard())
	f := fleet.ForTest(t, fleet.ClusterOptions{Name: "crds"}) // its etcd is read
	c, err := client.NewWithWatch(f.Cluster("crds").Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const first = "{name: v1, served: true, storage: true, FORM}"
	const second = "{name: v1, served: true, storage: false, FORM}, {name: v2, served: true, storage: true, FORM}"
	update(t, c, thingsCRD(t, first), "is new")
	for number := range things {
		createThing(t, c, thing(number))
	}
	update(t, c, thingsCRD(t, second), "is up to date now")
	expectStored(t, c, "v1", "v2")
	expect.Eventually(t, expect.Patience, func() error { // the API server hears of it by a watch of its own
		if err := touch(t.Context(), c, thing(0), newer); err != nil || storedIn(t, f, "v2") > 0 {
			return err
		}
		return errors.New("the API server still stores v1")
	})

	patches := 0
	broken := interceptor.NewClient(c, interceptor.Funcs{Patch: func(
		ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption,
	) error {
		if patches++; patches > cut {
			return errors.New("cut off")
		}
		return c.Patch(ctx, object, patch, options...)
	}})
	if told, err := Update(t.Context(), broken, thingsCRD(t, second)); err == nil {
		t.Fatalf("a run that was cut off says: %s", told)
	}
	expectStored(t, c, "v1", "v2")
	before := versionsOf(t, c)
	update(t, c, thingsCRD(t, second), fmt.Sprintf("was up to date, and stores %d objects in one version", things))
	expectStored(t, c, "v2")
	if left := storedIn(t, f, "v1"); left > 0 {
		t.Errorf("%d objects are stored in v1", left)
	}
	kept := 0
	for name, version := range versionsOf(t, c) {
		if before[name] == version {
			kept++
		}
	}
	if kept != cut {
		t.Errorf("%d objects were not written again, want %d", kept, cut)
	}

	update(t, c, thingsCRD(t, "{name: v2, served: true, storage: true, FORM}"), "newer release brought it: it has v1")
	update(t, c, thingsCRD(t, strings.Replace(second, "v1, served: true", "v1, served: false", 1)), "is up to date now")
	update(t, c, thingsCRD(t, "{name: v2, served: true, storage: true, FORM}"), "is up to date now")
	if found := len(versionsOf(t, c)); found != things {
		t.Errorf("%d objects are left", found)
	}
}

func update(t *testing.T, c client.Client, wanted *unstructured.Unstructured, tells string) {
	t.Helper()
	told, err := Update(t.Context(), c, wanted)
	if err != nil || !strings.HasSuffix(told, tells) {
		t.Fatalf("the CRD %s: %v; want %q", told, err, tells)
	}
}

// expectStored compares what the CRD says.
func expectStored(t *testing.T, c client.Client, want ...string) {
	t.Helper()
	found, err := Get(t.Context(), c, crdName)
	if err != nil {
		t.Fatal(err)
	}
	stored, _, _ := unstructured.NestedStringSlice(found.Object, "status", "storedVersions")
	if diff := cmp.Diff(want, stored); diff != "" {
		t.Fatalf("stored versions (-want +got):\n%s", diff)
	}
}

// createThing waits for discovery, which tells of a kind some time after its CRD says that it is served.
func createThing(t *testing.T, c client.Client, thing *metav1.PartialObjectMetadata) {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(older)
	object.SetNamespace(thing.Namespace)
	object.SetName(thing.Name)
	expect.Eventually(t, expect.Patience, func() error {
		err := c.Create(t.Context(), object)
		if err != nil && !meta.IsNoMatchError(err) {
			t.Fatal(err)
		}
		return err
	})
}

// versionsOf all things, as resourceVersions.
func versionsOf(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(newer)
	expect.List(t, c, list)
	found := map[string]string{}
	for i := range list.Items {
		found[list.Items[i].GetName()] = list.Items[i].GetResourceVersion()
	}
	return found
}

// storedIn counts the things that etcd has in a version.
func storedIn(t *testing.T, f *fleet.Fleet, version string) (count int) {
	t.Helper()
	var all struct{ Kvs []fleet.Record }
	everything := base64.StdEncoding.EncodeToString([]byte{0})
	if err := fleet.CallEtcd(t.Context(), f.EtcdURL(), "range", map[string]any{"key": everything, "range_end": everything}, &all); err != nil {
		t.Fatal(err)
	}
	for _, record := range all.Kvs {
		if bytes.Contains(record.Key, []byte("/example.com/things/")) && bytes.Contains(record.Value, []byte(`"apiVersion":"example.com/`+version+`"`)) {
			count++
		}
	}
	return count
}
