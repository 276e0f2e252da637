package cluster_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

func TestDescriptionOfAKKPCluster(t *testing.T) {
	deleted := metav1.NewTime(time.Unix(1, 0))
	found := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Name: "amber", UID: "u", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"},
		DeletionTimestamp: &deleted,
	}}
	found.Spec.Pause = true
	found.Status.NamespaceName, found.Status.Versions.ControlPlane = "cluster-amber", "1.36.3"
	want := target.Description{
		Ref: target.Ref{
			Kind: schema.GroupKind{Group: "kubermatic.k8c.io", Kind: "Cluster"}, Namespace: "cluster-amber", Name: "amber", UID: "u",
		},
		KubernetesVersion: "1.36.3", Labels: found.Labels, Annotations: found.Annotations, Paused: true, Deleted: true, DeletedAt: found.DeletionTimestamp.Time,
		Owner:  metav1.OwnerReference{APIVersion: "kubermatic.k8c.io/v1", Kind: "Cluster", Name: "amber", UID: "u"},
		Object: found,
	}
	if diff := cmp.Diff(want, cluster.Describe(found)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if empty := cluster.Describe(&kkpv1.Cluster{}); empty.Paused || empty.Deleted || empty.KubernetesVersion != "" {
		t.Errorf("a Cluster that is being made: %+v", empty)
	}
}

// TestFactsCountAboveLabels fails when a label that users may edit counts as a fact.
func TestFactsCountAboveLabels(t *testing.T) {
	object := &kkpv1.Cluster{}
	object.Name, object.Status.NamespaceName = "birch", "cluster-birch"
	object.Spec.Cloud.ProviderName, object.Spec.Cloud.Datacenter = "hetzner", "fsn1"
	object.Labels = map[string]string{"ring": "0", v1.FactSeed: "forged", v1.FactName: "forged"}
	want := labels.Set{
		"ring": "0", v1.FactName: "birch", v1.FactNamespace: "cluster-birch", v1.FactKind: "Cluster",
		v1.FactProvider: "hetzner", v1.FactDatacenter: "fsn1",
	}
	if diff := cmp.Diff(want, cluster.Labels(cluster.Describe(object), "")); diff != "" {
		t.Errorf("where the seed's name is not known (-want +got):\n%s", diff)
	}
	want[v1.FactSeed] = "europe"
	if diff := cmp.Diff(want, cluster.Labels(cluster.Describe(object), "europe")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	other := target.Description{Ref: target.Ref{Kind: schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Cluster"}, Name: "oak"}}
	if got := cluster.Labels(other, "")[v1.FactKind]; got != "Cluster.cluster.x-k8s.io" {
		t.Errorf("a kind of another group is %q", got)
	}
}
