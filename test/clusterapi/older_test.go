package clusterapi

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"

	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// TestAnOlderClusterAPIServesItsVersionAlone holds that the real CRDs do without v1beta2, for who reads v1beta1 where nothing newer is,
// and that Clusters can be written there with a status, without a manager.
func TestAnOlderClusterAPIServesItsVersionAlone(t *testing.T) {
	config := fleet.Shared().Cluster(older).Config
	expect.NoError(t, InstallOlderCRDs(t.Context(), config))
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	expect.NoError(t, err)
	groups, err := asked.ServerGroups()
	expect.NoError(t, err)
	at := slices.IndexFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == Group })
	if at < 0 || len(groups.Groups[at].Versions) != 1 || groups.Groups[at].Versions[0].Version != "v1beta1" {
		t.Fatalf("groups are %v", groups.Groups)
	}
	c := fleet.InNamespace(t, older, "older")
	cluster := object(OlderClusterKind, "older", "one")
	cluster.Object["spec"] = map[string]any{
		"topology":          map[string]any{"class": ClassName, "version": before},
		"infrastructureRef": map[string]any{"apiVersion": InfraClusterKind.GroupVersion().String(), "kind": InfraClusterKind.Kind, "name": "one"},
	}
	expect.Create(t, c, cluster)
	cluster.Object["status"] = map[string]any{"controlPlaneReady": true, "infrastructureReady": true}
	expect.UpdateStatus(t, c, cluster)
	if ready, _, _ := unstructured.NestedBool(cluster.Object, "status", "controlPlaneReady"); !ready {
		t.Errorf("the Cluster is stored as %v", cluster.Object)
	}
}
