package installing

import (
	"context"
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
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
	for _, name := range []string{platformNamespace, catalogueNamespace, targetNamespace} {
		expect.Create(b, w.seed, kit.Namespace(name))
	}
	expect.Create(b, w.seed, given.AuthoritySecret(catalogueNamespace, w.sources.CA))
	kit.UserCluster(b, w.seed, clusterName, w.both.Kubeconfig)
	return w
}

// offer publishes the merged catalogue of an add-on with one version.
func (w *world) offer(b *testing.B, addon string, template *kubermaticv1.Template, source *kubermaticv1.Source) {
	b.Helper()
	offered := given.Addon(addon, kubermaticv1.AddonVersion{Version: "1.0.0", Template: template, Source: source})
	expect.Create(b, w.seed, given.Merged(catalogueNamespace, kubermaticv1.CatalogueCustom, offered))
}

// gitSource is a repository of the world's sources.
func (w *world) gitSource(repository string) *kubermaticv1.Source {
	return given.Git(w.sources.GitURL+"/"+repository+".git", "")
}

// installation of an add-on, whose template learns the name by value "name".
func installation(addon, name string) *kubermaticv1.AddonInstallation {
	return given.Installation(
		clusterNamespace, name, addon, targetNamespace, given.In("1.0.0"), given.Values(fmt.Sprintf(`{"name":%q}`, name)),
	)
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
