package revision

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/test/expect"
)

// Red when a record of a cluster that KKP did not make is owned by one of KKP's, when its group is lost, or when clusters of a namespace
// have records in common.
func TestRecordsBelongToClustersOfAnyKind(t *testing.T) {
	c := seed(t, "kinds")
	records := NewRecords(c, c, testSeal)
	clusterOf := func(uid types.UID) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Name: "prod-" + string(uid), UID: uid}
	}
	for _, uid := range []types.UID{"one", "two"} {
		record := sample(1, 0)
		record.BelongTo(clusterOf(uid))
		expect.NoError(t, records.SaveApplied(t.Context(), "kinds", record))
	}
	var list corev1.SecretList
	expect.List(t, c, &list, client.InNamespace("kinds"))
	owners := map[types.UID]metav1.OwnerReference{}
	for _, item := range list.Items {
		owner := item.OwnerReferences[0]
		owner.BlockOwnerDeletion = nil
		owners[owner.UID] = owner
	}
	if diff := cmp.Diff(map[types.UID]metav1.OwnerReference{"one": clusterOf("one"), "two": clusterOf("two")}, owners); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	one := ownership.Owner{ClusterUID: "one", Installation: "prometheus"}
	expect.NoError(t, records.Forget(t.Context(), "kinds", one))
	want := []v1.ClusterIdentity{{Group: "cluster.x-k8s.io", Name: "prod-two", UID: "two"}}
	found, err := records.Clusters(t.Context(), "kinds", "prometheus")
	if diff := cmp.Diff(want, found); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	kkp := sample(1, 0)
	kkp.BelongTo(metav1.OwnerReference{APIVersion: "kubermatic.k8c.io/v1", Kind: "Cluster", Name: "c", UID: "uid-1"})
	same(t, sample(1, 0), kkp) // it says no more than it did before there were others
}
