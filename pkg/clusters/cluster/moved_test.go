package cluster_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/world"
)

// unserve makes the API server stop serving a version of Cluster API's Clusters.
func (m *management) unserve(version string) {
	m.t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	expect.Get(m.t, m, client.ObjectKey{Name: "clusters.cluster.x-k8s.io"}, crd)
	all, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	at := slices.IndexFunc(all, func(one any) bool { return one.(map[string]any)["name"] == version })
	if at < 0 || err != nil {
		m.t.Fatalf("of version %q: %v, %v", version, at, err)
	}
	all[at].(map[string]any)["served"] = false
	expect.NoError(m.t, errors.Join(unstructured.SetNestedSlice(crd.Object, all, "spec", "versions"), m.Update(m.t.Context(), crd)))
}

// looks is the number of requests for the served kinds.
func (a *asking) looks() (count int) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for _, one := range a.urls {
		if strings.HasSuffix(one, "/apis") {
			count++
		}
	}
	return count
}

// TestAManagerOfAVersionThatIsServedNoMoreStartsAgain: An upgrade of Cluster API first adds v1beta2 to its CRDs and
// then removes v1beta1. The test fails when a manager that began with v1beta1 then loses a Cluster or reports it as
// gone, ends while both versions are served, or keeps its old data.
func TestAManagerOfAVersionThatIsServedNoMoreStartsAgain(t *testing.T) {
	config := fleet.ForTest(t, fleet.ClusterOptions{Name: "moving"}).Cluster("moving").Config
	if err := errors.Join(fleet.InstallCRDs(t.Context(), config, fleet.CRDs(t)[0]), clusterapi.InstallOlderCRDs(t.Context(), config)); err != nil {
		t.Fatal(err)
	}
	m := &management{t: t, config: config, kind: clusterapi.OlderClusterKind, WithWatch: world.Client(t, config)}
	m.create("team", "one", set("spec", map[string]any{"paused": true}))
	served := cluster.Kinds{Served: []schema.GroupKind{target.KindClusterAPI}}
	patient := m.manager(served).Clusters
	asked := &asking{}
	asked.wrap(m)
	looking := world.SeedOf(t, m.config, "addon-catalogue", served)
	looking.Clusters.LookEvery(50 * time.Millisecond)
	ended := make(chan error, 1)
	go func() { ended <- looking.Start(looking.Context()) }()
	found := func(finder *cluster.Finders, version string) target.Description {
		t.Helper()
		var one target.Description
		expect.Eventually(t, expect.Patience, func() (err error) {
			one, err = finder.Find(t.Context(), target.Ref{Namespace: "team", Name: "one"})
			if err == nil && one.Owner.APIVersion != clusterapi.Group+"/"+version {
				err = fmt.Errorf("it is of %s", one.Owner.APIVersion)
			}
			return err
		})
		return one
	}
	before := found(looking.Clusters, "v1beta1")
	expect.NoError(t, clusterapi.InstallCRDs(t.Context(), config))
	if live, err := looking.Clusters.Live(t.Context(), before.Ref); err != nil || live.Owner != before.Owner {
		t.Errorf("while both versions are served: %v, %v", live.Owner, err)
	}
	looks := asked.looks()
	expect.Eventually(t, expect.Patience, func() error {
		if len(ended) == 0 && asked.looks() < looks+3 { // one may have begun before
			return errors.New("the manager does not look what is served")
		}
		return nil
	})
	if len(ended) > 0 {
		t.Fatalf("while both versions are served, the manager ends: %v", <-ended)
	}
	m.unserve("v1beta1")
	moved := &cluster.MovedError{Kind: target.KindClusterAPI, From: "v1beta1", To: "v1beta2"}
	expect.Eventually(t, expect.Patience, func() error {
		if len(ended) == 0 {
			return errors.New("the manager goes on with what it has read before")
		}
		return nil
	})
	if err := <-ended; err == nil || err.Error() != moved.Error() {
		t.Errorf("the manager ends with %v", err)
	}
	ref := found(patient, "v1beta1").Ref
	if gone, err := patient.Gone(t.Context(), ref); gone || err == nil {
		t.Errorf("of a version that is served no more: gone %t, %v", gone, err)
	}
	if _, err := patient.Live(t.Context(), ref); err == nil || apierrors.IsNotFound(err) {
		t.Errorf("of a version that is served no more, it is told that %v", err)
	}
	m.config = config
	after := found(m.finder(served), "v1beta2")
	if after.Ref != ref {
		t.Errorf("it was %v, and is %v", ref, after.Ref)
	}
}
