package cluster_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/target"
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
		KubernetesVersion: "1.36.3", Labels: found.Labels, Annotations: found.Annotations, Paused: true, Deleted: true,
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
