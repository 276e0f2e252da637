package query_test

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	kit "github.com/trellis-addons/trellis/test/world"
)

// member makes a Cluster of Cluster API, and an installation in it.
func (w *world) member(namespace, name, version string) {
	w.t.Helper()
	made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"infrastructureRef": map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "PlayedCluster", "name": name},
	}}}
	made.SetGroupVersionKind(clusterapi.ClusterKind)
	made.SetNamespace(namespace)
	made.SetName(name)
	expect.Create(w.t, w.seed, made)
	made.Object["status"] = map[string]any{
		"controlPlane": map[string]any{"versions": []any{map[string]any{"version": version, "replicas": int64(1)}}},
	}
	expect.UpdateStatus(w.t, w.seed, made)
	object := &v1.AddonInstallation{Spec: v1.AddonInstallationSpec{ClusterName: name, AddonRef: v1.AddonReference{Name: "web"}}}
	object.Namespace, object.Name = namespace, "of-"+name
	expect.Create(w.t, w.seed, object)
}

// Red when an answer is about another cluster of the namespace than the named one, or about all; when a missing name is not told, or KKP's
// version counts in a cluster that KKP did not make.
func TestAQuestionIsAboutOneOfANamespace(t *testing.T) {
	w := newWorld(t)
	expect.NoError(t, clusterapi.InstallCRDs(t.Context(), fleet.Shared().Cluster("seed").Config))
	w.kinds = cluster.Kinds{Served: []schema.GroupKind{target.KindKKP, target.KindClusterAPI}}
	w.layOutWeb()
	team := "team-" + w.catalogue
	expect.Create(w.t, w.seed, kit.Namespace(team))
	w.member(team, "one", "v1.36.3")
	w.member(team, "two", "v1.37.1")
	w.start()
	tenant := w.account("tenant")
	w.grant("tenant", team, catalogues, "addoninstallations")
	listed := "/api/v1/namespaces/" + team + "/addons"
	for name, version := range map[string]string{"one": `"1.36.3"`, "two": `"1.37.1"`} {
		got := w.get(listed+"?cluster="+name, tenant)
		got.expectStatus(t, "a listing of "+name, http.StatusOK)
		if body := string(got.body); !strings.Contains(body, `"kkpVersion":"","k8sVersion":`+version) {
			t.Errorf("the listing of %s begins with %s", name, shortened(body))
		}
	}
	w.get(listed+"/web/versions/1.5.0?cluster=two", tenant).expectStatus(t, "a version", http.StatusOK)
	check := `{"namespace":"` + team + `","k8sVersion":"v1.38.0"}`
	got := w.ask(http.MethodPost, "/api/v1/upgrade-check?cluster=two", tenant, check)
	got.expectStatus(t, "a check", http.StatusOK)
	body := string(got.body)
	if !strings.Contains(body, `"cluster":"two"`) || !strings.Contains(body, `"from":"1.37.1"`) || !strings.Contains(body, "of-two") ||
		strings.Contains(body, "of-one") {
		t.Errorf("the check of one cluster says %s", body)
	}
	for _, path := range []string{listed, listed + "/web/versions/1.5.0"} {
		missing := w.get(path, tenant)
		missing.expectStatus(t, "no name", http.StatusBadRequest)
		if !strings.Contains(string(missing.body), "namespace: one, two") {
			t.Errorf("nobody tells which Clusters there are: %s", missing.body)
		}
	}
	w.ask(http.MethodPost, "/api/v1/upgrade-check", tenant, check).expectStatus(t, "no name", http.StatusBadRequest)
	w.get(listed+"?cluster=three", tenant).expectStatus(t, "a name that there is not", http.StatusNotFound)
	w.get(listed+"?cluster=No!", tenant).expectStatus(t, "what is no name", http.StatusBadRequest)
}
