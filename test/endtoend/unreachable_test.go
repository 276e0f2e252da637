package endtoend_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// testUnreachable: a dead API server is told as Unknown, holds up no other cluster of its seed, and what was asked for
// meanwhile is done on its return. Then the Cluster goes with its API server dead again, and nothing waits for that.
// It turns red when a removal calls the cluster before it looks whether the Cluster is being deleted.
func testUnreachable(t *testing.T, box *sandbox.Sandbox) {
	doomed, neighbour := sandbox.UserClusters()[3], sandbox.UserClusters()[2]
	master, seed := box.Client(sandbox.Master), box.Client(doomed.Seed)
	commit(t, box, "far", map[string]string{"settings.yaml": settingsManifest("{{ .Variables.value | quote }}")})
	expect.Ensure(t, master, catalogueOf("far", gitVersion(box, "far", "")))
	installation, beside := farInstallation(doomed), farInstallation(neighbour)
	expect.Ensure(t, seed, installation)
	ready(t, seed, installation)

	server := box.Fleet.Cluster(doomed.Name)
	server.StopServer()
	change(t, seed, installation, `{"value":"two"}`)
	expect.HasCondition(t, seed, installation.DeepCopy(), expect.Is(kubermaticv1.ConditionReady, "Unknown", kubermaticv1.ReasonClusterUnreachable))
	expect.Ensure(t, seed, beside)
	ready(t, seed, beside)

	expect.NoError(t, server.StartServer(t.Context()))
	ready(t, seed, installation)
	if got := settings(t, box.Client(doomed.Name), "far").Data["value"]; got != "two" {
		t.Errorf("after the return the value is %q", got)
	}

	server.StopServer()
	gone := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: doomed.Name}}
	expect.Delete(t, seed, gone)
	expect.Gone(t, seed, installation)
	expect.Gone(t, seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: doomed.Namespace()}})
}

func farInstallation(cluster sandbox.UserCluster) *kubermaticv1.AddonInstallation {
	installation := newInstallation("far", "far")
	installation.Namespace = cluster.Namespace()
	installation.Spec.Values = &runtime.RawExtension{Raw: []byte(`{"value":"one"}`)}
	return installation
}

func change(t *testing.T, seed client.Client, installation *kubermaticv1.AddonInstallation, values string) {
	t.Helper()
	changed := installation.DeepCopy()
	changed.Spec.Values = &runtime.RawExtension{Raw: []byte(values)}
	expect.Patch(t, seed, changed, client.MergeFrom(installation))
}
