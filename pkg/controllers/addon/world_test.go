package addon_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/controllers/addon"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	kit "github.com/trellis-addons/trellis/test/world"
)

func TestMain(m *testing.M) {
	fleet.Main(m, fleet.ClusterOptions{Name: "seed", Controllers: true})
}

// world is a seed with a catalogue namespace and clusters of the test's own.
type world struct {
	t         testing.TB
	catalogue string
	seed      client.Client
	// reach is how the next controller that starts reaches the seed.
	reach *rest.Config
	// beside are Clusters that are not KKP's; nil: there are none.
	beside *kit.Beside
	// marks tell merged catalogues from others.
	marks *mergedcatalogue.Marks
	// cancel ends the controller that was started last, in the middle of what it does; ended waits
	// for that.
	cancel, ended func()
	// manager is that of the controller that was started last.
	manager *kit.Manager
}

var worlds int

func newWorld(t testing.TB) *world {
	t.Helper()
	worlds++
	w := &world{t: t, catalogue: fmt.Sprintf("catalogue-%d", worlds), marks: mergedcatalogue.New(logr.Discard())}
	w.reach = fleet.Shared().Cluster("seed").Config
	w.seed = client.WithFieldOwner(kit.Client(t, w.reach), "test")
	expect.Create(w.t, w.seed, kit.Namespace(w.catalogue))
	t.Cleanup(func() {
		if err := w.seed.DeleteAllOf(context.Background(), &kkpv1.Cluster{}); err != nil {
			t.Error(err)
		}
	})
	return w
}

// start runs the controller until the returned function is called, at the latest at the end of the
// test.
func (w *world) start() (stop func()) {
	w.t.Helper()
	made := kit.Seed(w.t, w.reach, w.catalogue)
	dependencies := wiring.Addon(made.Seed, w.marks, addon.Options{CatalogueNamespace: w.catalogue})
	if w.beside != nil {
		dependencies.Finder = w.beside.Over(made.Clusters, made.Clusters)
	}
	made.SetUp(addon.New(dependencies))
	made.Run()
	w.cancel, w.ended, w.manager = made.Cancel, made.Wait, made
	return made.Stop
}

// steady fails the test unless something holds before and after the catalogue and all clusters are reconciled again.
func (w *world) steady(holds func() error) {
	w.t.Helper()
	w.manager.Stays(holds, "addon-catalogue", "addon")
}

// cluster makes a Cluster with a namespace; an empty version is one that is not known yet.
func (w *world) cluster(name, version string) *kkpv1.Cluster {
	w.t.Helper()
	name = fmt.Sprintf("%s-%d", name, worlds)
	expect.Create(w.t, w.seed, kit.Namespace("cluster-"+name))
	return w.bareCluster(name, version)
}

// bareCluster is a Cluster whose namespace does not exist.
func (w *world) bareCluster(name, version string) *kkpv1.Cluster {
	w.t.Helper()
	object := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	expect.Create(w.t, w.seed, object)
	w.status(object, func(status *kkpv1.ClusterStatus) {
		status.NamespaceName, status.Versions.ControlPlane = "cluster-"+name, version
	})
	return object
}

func (w *world) status(object *kkpv1.Cluster, change func(*kkpv1.ClusterStatus)) {
	w.t.Helper()
	before := object.DeepCopy()
	change(&object.Status)
	expect.PatchStatus(w.t, w.seed, object, client.MergeFrom(before))
}

// merged makes or replaces a merged catalogue; versions are given with their range of Kubernetes
// versions.
func (w *world) merged(name string, kind v1.CatalogueType, versions ...[2]string) *v1.AddonCatalogue {
	w.t.Helper()
	object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: name}}
	found := v1.Addon{Name: v1.AddonName(name), Description: "for users who choose"}
	for _, version := range versions {
		added := v1.AddonVersion{Version: version[0]}
		if version[1] != "" {
			added.Constraints = &v1.Constraints{K8sVersion: v1.VersionRange(version[1])}
		}
		found.Versions = append(found.Versions, added)
	}
	expect.Put(w.t, w.seed, object, func(object *v1.AddonCatalogue) {
		object.Labels = map[string]string{v1.LabelRole: v1.RoleMerged}
		object.Annotations = map[string]string{v1.AnnotationKKPVersion: "v2.31.0"}
		object.Spec = v1.AddonCatalogueSpec{Type: kind, Addons: []v1.Addon{found}}
	})
	return object
}

func availableOf(of *kkpv1.Cluster) *v1.AddonCatalogue {
	return &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{
		Namespace: "cluster-" + of.Name, Name: v1.AvailableCatalogue,
	}}
}

// expectOffer waits until a cluster is offered exactly that, written as "name: versions".
func (w *world) expectOffer(of *kkpv1.Cluster, offers ...string) *v1.AddonCatalogue {
	w.t.Helper()
	return expect.Object(w.t, w.seed, availableOf(of), func(object *v1.AddonCatalogue) error {
		var have []string
		for _, found := range object.Spec.Addons {
			line := []string{string(found.Name) + ":"}
			for _, version := range found.Versions {
				line = append(line, version.Version)
			}
			have = append(have, strings.Join(line, " "))
		}
		if fmt.Sprintf("%q", have) != fmt.Sprintf("%q", offers) {
			return fmt.Errorf("offered %q, want %q", have, offers)
		}
		if object.Annotations[v1.AnnotationDigest] == "" {
			return fmt.Errorf("no digest yet")
		}
		return expect.Condition(object, v1.ConditionReady, "True", v1.ReasonSelected)
	})
}
