package world

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// UserCluster creates a Cluster of KKP that is up, in its own namespace, with its kubeconfig if there is one. Changes
// are applied to its initial state, including its status.
func UserCluster(t testing.TB, with client.Client, name string, kubeconfig []byte, changes ...func(*kkpv1.Cluster)) *kkpv1.Cluster {
	t.Helper()
	made := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	made.Status.NamespaceName, made.Status.Versions.ControlPlane = "cluster-"+name, given.Kubernetes
	made.Status.ExtendedHealth.APIServer = kkpv1.HealthUp
	for _, change := range changes {
		change(made)
	}
	status := made.Status
	expect.Create(t, with, Namespace(status.NamespaceName), made)
	if kubeconfig != nil {
		expect.Create(t, with, given.Kubeconfig(status.NamespaceName, kubeconfig))
	}
	made.Status = status
	expect.UpdateStatus(t, with, made)
	return made
}

// UseKey makes marks count from now on, by a key of the distributor in a namespace of the seed.
func UseKey(t testing.TB, with client.Client, marks *mergedcatalogue.Marks, namespace string, key []byte) {
	t.Helper()
	expect.Create(t, with, given.Secret(namespace, v1.SecretCatalogueKey, map[string][]byte{v1.MarkKeyField: key}))
	expect.NoError(t, marks.Read(t.Context(), with, namespace))
}
