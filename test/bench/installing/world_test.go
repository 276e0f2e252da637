package installing

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	kit "github.com/trellis-addons/trellis/test/world"
)

// Names in every world.
const (
	platformNamespace  = "kubermatic"
	catalogueNamespace = "addon-catalogue"
	clusterName        = "bench"
	clusterNamespace   = "cluster-bench"
	// targetNamespace takes the objects of all installations, and of the peers.
	targetNamespace = "bench"
)

// world is one API server that is seed and user cluster, sources, and the seed manager.
type world struct {
	fleet   *fleet.Fleet
	both    *fleet.Cluster
	sources *fleet.Sources
	seed    client.WithWatch
	manager *manager
}

// newWorld starts everything but the manager, with further user clusters where they are given.
func newWorld(b *testing.B, further ...fleet.ClusterOptions) *world {
	b.Helper()
	both := fleet.ClusterOptions{Name: "both", FreeOwners: true}
	w := &world{fleet: fleet.ForTest(b, append(further, both)...), sources: fleet.SourcesForTest(b)}
	w.both = w.fleet.Cluster("both")
	w.seed = kit.Client(b, w.both.Config)
	for _, name := range []string{platformNamespace, catalogueNamespace, clusterNamespace, targetNamespace} {
		expect.Create(b, w.seed, kit.Namespace(name))
	}
	expect.Create(b, w.seed, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: catalogueNamespace, Name: "authority", Labels: map[string]string{kubermaticv1.LabelUse: kubermaticv1.UseSource},
			Annotations: map[string]string{kubermaticv1.AnnotationHosts: "127.0.0.1"},
		},
		Data: map[string][]byte{"ca.crt": w.sources.CA},
	})
	w.addCluster(b, clusterName, clusterNamespace, w.both)
	return w
}

// addCluster makes a Cluster, as KKP would have it, in a namespace that is there.
func (w *world) addCluster(b *testing.B, name, namespace string, server *fleet.Cluster) {
	b.Helper()
	expect.Create(b, w.seed, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "internal-admin-kubeconfig"},
		Data:       map[string][]byte{"kubeconfig": server.Kubeconfig},
	})
	made := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	expect.Create(b, w.seed, made)
	made.Status.Versions.ControlPlane, made.Status.NamespaceName = "v"+binaries.Older, namespace
	made.Status.ExtendedHealth.APIServer = kkpv1.HealthUp
	expect.UpdateStatus(b, w.seed, made)
}

// offer publishes the merged catalogue of an add-on with one version.
func (w *world) offer(b *testing.B, addon string, template *kubermaticv1.Template, source *kubermaticv1.Source) {
	b.Helper()
	expect.Create(b, w.seed, &kubermaticv1.AddonCatalogue{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: catalogueNamespace, Name: addon, Labels: map[string]string{kubermaticv1.LabelRole: kubermaticv1.RoleMerged},
			Annotations: map[string]string{kubermaticv1.AnnotationKKPVersion: "v2.31.0"},
		},
		Spec: kubermaticv1.AddonCatalogueSpec{
			Type: kubermaticv1.CatalogueCustom,
			Addons: []kubermaticv1.Addon{{
				Name:     kubermaticv1.AddonName(addon),
				Versions: []kubermaticv1.AddonVersion{{Version: "1.0.0", Template: template, Source: source}},
			}},
		},
	})
}

// gitSource is a repository of the world's sources.
func (w *world) gitSource(repository string) *kubermaticv1.Source {
	return &kubermaticv1.Source{Git: &kubermaticv1.GitSource{
		Remote:      kubermaticv1.GitRemote(w.sources.GitURL + "/" + repository + ".git"),
		CASecretRef: &kubermaticv1.LocalReference{Name: "authority"},
	}}
}

// installation of an add-on, whose template learns the name by value "name".
func installation(addon, name string) *kubermaticv1.AddonInstallation {
	return &kubermaticv1.AddonInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterNamespace, Name: name},
		Spec: kubermaticv1.AddonInstallationSpec{
			AddonRef:        kubermaticv1.AddonReference{Name: kubermaticv1.AddonName(addon), Version: "1.0.0"},
			TargetNamespace: targetNamespace, Values: &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"name":%q}`, name)},
		},
	}
}

// names of one round's installations or releases.
func names(prefix string, count int) []string {
	all := make([]string, count)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%03d", prefix, i)
	}
	return all
}

// count fails unless the target namespace has that many objects of a kind whose name begins with the prefix.
func (w *world) count(ctx context.Context, list client.ObjectList, prefix string, want int) error {
	if err := w.seed.List(ctx, list, client.InNamespace(targetNamespace)); err != nil {
		return err
	}
	have, err := countPrefixed(list, prefix)
	if err == nil && have != want {
		err = fmt.Errorf("%T: %d objects named %s…, want %d", list, have, prefix, want)
	}
	return err
}
