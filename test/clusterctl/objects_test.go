package clusterctl

import (
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/trellis-addons/trellis/test/fleet"
)

// objects are those of a cluster, by kind, namespace and name.
type objects map[string]*unstructured.Unstructured

// ofServers are kinds that API servers write by themselves, and of which no release has any.
var ofServers = []string{"Event", "Lease", "APIService", "Endpoints", "IPAddress"}

// everything lists all that an API server has.
func everything(t *testing.T, cluster string) objects {
	t.Helper()
	config := fleet.Shared().Cluster(cluster).Config
	kinds, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	reader := dynamic.NewForConfigOrDie(config)
	all := objects{}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, kinds) {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range list.APIResources {
			if slices.Contains(ofServers, kind.Kind) {
				continue
			}
			found, err := reader.Resource(group.WithResource(kind.Name)).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatalf("listing %s: %v", kind.Name, err)
			}
			for i := range found.Items {
				one := &found.Items[i]
				all[strings.TrimSpace(one.GetKind()+" "+one.GetNamespace()+"/"+one.GetName())] = one
			}
		}
	}
	return all
}

// without are those that another lot has not.
func (o objects) without(others objects) objects {
	left := maps.Clone(o)
	for key := range others {
		delete(left, key)
	}
	return left
}

// ofEach are fields that each API server fills in its own way, and in pods what says who installed them.
var ofEach = [][]string{
	{"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "creationTimestamp"}, {"metadata", "generation"},
	{"metadata", "managedFields"}, {"status"}, {"spec", "clusterIP"}, {"spec", "clusterIPs"},
	{"spec", "template", "metadata", "labels", managedBy},
}

const managedBy = "app.kubernetes.io/managed-by"

// byInstaller are labels and annotations of who installed an object.
var byInstaller = []string{
	managedBy, "clusterctl.cluster.x-k8s.io", "cluster.x-k8s.io/provider",
	"meta.helm.sh/release-name", "meta.helm.sh/release-namespace",
}

// contents are the objects less what says on which server they are, and by whom. Images have the host that their names mean.
func (o objects) contents(t *testing.T) map[string]any {
	t.Helper()
	all := map[string]any{}
	for key, object := range o {
		plain := object.DeepCopy()
		for _, field := range ofEach {
			unstructured.RemoveNestedField(plain.Object, field...)
		}
		for _, field := range []string{"labels", "annotations"} {
			notes, _, err := unstructured.NestedStringMap(plain.Object, "metadata", field)
			if err != nil {
				t.Fatal(err)
			}
			maps.DeleteFunc(notes, func(name, _ string) bool { return slices.Contains(byInstaller, name) })
			unstructured.RemoveNestedField(plain.Object, "metadata", field)
			if len(notes) == 0 {
				continue
			}
			if err := unstructured.SetNestedStringMap(plain.Object, notes, "metadata", field); err != nil {
				t.Fatal(err)
			}
		}
		nameHost(plain)
		all[key] = plain.Object
	}
	return all
}

// nameHost names Docker Hub where a Deployment's image has no host.
func nameHost(object *unstructured.Unstructured) {
	containers, _, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "template", "spec", "containers")
	list, isList := containers.([]any)
	if err != nil || !isList {
		return
	}
	for _, one := range list {
		container, _ := one.(map[string]any)
		if image, _ := container["image"].(string); strings.HasPrefix(image, "trellis-addons/") {
			container["image"] = "docker.io/" + image
		}
	}
}
