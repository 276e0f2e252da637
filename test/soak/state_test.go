package soak

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/sandbox"
)

func encoded(content []byte) string { return base64.StdEncoding.EncodeToString(content) }

// kinds are those that the samples and core add-ons bring.
var kinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Namespace"}, {Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ServiceAccount"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"}, {Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	{Group: "samples.example.com", Version: "v1", Kind: "Greeting"},
}

// objects is what stands in a user cluster with our label, in words without identities and times.
func (p *platform) objects(t testing.TB, cluster sandbox.UserCluster) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		expect.List(t, p.Client(cluster.Name), list, client.HasLabels{kubermaticv1.LabelInstallation})
		for _, object := range list.Items {
			found[kind.Kind+" "+object.GetNamespace()+"/"+object.GetName()] = essence(t, object)
		}
	}
	return found
}

// essence leaves out what another life of the same object has otherwise.
func essence(t testing.TB, object unstructured.Unstructured) string {
	t.Helper()
	content := maps.Clone(object.Object)
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	delete(labels, kubermaticv1.LabelInstallation)
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, "deployment.kubernetes.io/") })
	content["metadata"] = map[string]any{"labels": labels, "annotations": annotations}
	delete(content, "status")
	if spec, isMap := content["spec"].(map[string]any); isMap {
		spec = maps.Clone(spec)
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
		content["spec"] = spec
	}
	text, err := json.Marshal(content)
	expect.NoError(t, err)
	return string(text)
}

// expectSame waits until a cluster has what it had at the beginning, and nothing of another one.
func (p *platform) expectSame(t testing.TB, cluster sandbox.UserCluster, before map[string]string) {
	t.Helper()
	expect.Eventually(t, patience, func() error {
		if diff := cmp.Diff(before, p.objects(t, cluster)); diff != "" {
			return &differenceError{cluster.Name, diff}
		}
		return nil
	})
}

// differenceError says what a cluster has otherwise than at the beginning.
type differenceError struct{ cluster, diff string }

func (e *differenceError) Error() string {
	return "cluster " + e.cluster + " has other objects (-before +now):\n" + e.diff
}
