package soak

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// report says how things stand at a failure, as far as that can be read still.
func (p *platform) report(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	for _, cluster := range sandbox.UserClusters() {
		p.reportOne(ctx, t, cluster)
	}
}

func (p *platform) reportOne(ctx context.Context, t testing.TB, cluster sandbox.UserCluster) {
	t.Helper()
	seed, found, identity := p.Client(cluster.Seed), &kkpv1.Cluster{}, &corev1.ConfigMap{}
	err := seed.Get(ctx, client.ObjectKey{Name: cluster.Name}, found)
	t.Logf("Cluster %s: UID %s, made %s, deleted %v, annotations %v, %v",
		cluster.Name, found.UID, found.CreationTimestamp, found.DeletionTimestamp, found.Annotations, err)
	err = seed.Get(ctx, identityKey(cluster), identity)
	system := &corev1.Namespace{}
	_ = p.Client(cluster.Name).Get(ctx, client.ObjectKey{Name: "kube-system"}, system)
	t.Logf("its identity: %v, %v; kube-system has %s", identity.Data, err, system.UID)
	var installations kubermaticv1.AddonInstallationList
	err = seed.List(ctx, &installations, client.InNamespace(cluster.Namespace()))
	t.Logf("%d installations, %v", len(installations.Items), err)
	for _, item := range installations.Items {
		t.Logf("%s: UID %s, deleted %v, finalizers %v", item.Name, item.UID, item.DeletionTimestamp, item.Finalizers)
		for _, condition := range item.Status.Conditions {
			t.Logf("  %s %s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
		}
	}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := p.Client(cluster.Name).List(ctx, list, client.HasLabels{kubermaticv1.LabelInstallation}); err != nil {
			t.Logf("listing %s: %v", kind.Kind, err)
		}
		for _, object := range list.Items {
			t.Logf("  %s %s/%s is of %s, made %s", kind.Kind, object.GetNamespace(), object.GetName(),
				object.GetLabels()[kubermaticv1.LabelInstallation], object.GetCreationTimestamp())
		}
	}
}
