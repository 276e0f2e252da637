package distributor_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/git"
	"github.com/trellis-addons/trellis/pkg/fetch/helmrepo"
	"github.com/trellis-addons/trellis/pkg/fetch/image"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	kit "github.com/trellis-addons/trellis/test/world"
)

func TestMain(m *testing.M) {
	fleet.Main(m, fleet.ClusterOptions{Name: "master"},
		fleet.ClusterOptions{Name: "seed"}) // which is restored from a backup
}

// world is a master and its seeds, with namespaces of the test's own.
type world struct {
	t                   *testing.T
	platform, catalogue string
	master              client.Client
	clients             map[string]client.Client
	end                 func()
	// manager is that of the controller that was started last.
	manager *kit.Manager
	// held and heldSets are how many bytes the cache may take for catalogues and for sets; 0: as the program's. running is that of the
	// controller that was started last.
	held, heldSets int64
	running        *distributor.Master
}

var worlds int

func newWorld(t *testing.T) *world {
	t.Helper()
	worlds++
	w := &world{
		t: t, end: func() {}, clients: map[string]client.Client{},
		platform: fmt.Sprintf("platform-%d", worlds), catalogue: fmt.Sprintf("catalogue-%d", worlds),
	}
	w.reach("master", fleet.Shared().Cluster("master"))
	w.reach("seed", fleet.Shared().Cluster("seed"))
	w.master = w.client("master")
	expect.Create(w.t, w.master, kit.Namespace(w.platform))
	t.Cleanup(func() {
		w.end()
		w.dropSets()
		err := w.master.DeleteAllOf(context.Background(), &v1.AddonCatalogue{}, client.InNamespace(w.platform))
		if err != nil {
			t.Error(err)
		}
	})
	return w
}

// reach a cluster, under a name.
func (w *world) reach(name string, cluster *fleet.Cluster) {
	w.t.Helper()
	w.clients[name] = client.WithFieldOwner(kit.Client(w.t, cluster.Config), "test")
}

func (w *world) client(cluster string) client.Client { return w.clients[cluster] }

// start runs the controller; stop ends it and waits.
func (w *world) start(change ...func(*distributor.Options)) (stop func()) {
	w.t.Helper()
	options := distributor.Options{Namespace: w.platform, CatalogueNamespace: w.catalogue, KKPVersion: "v2.31.0"}
	for _, set := range change {
		set(&options)
	}
	made := kit.Master(w.t, fleet.Shared().Cluster("master").Config)
	master, err := distributor.NewMaster(made, options.Namespace)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.running = master; w.held > 0 {
		master.Held.Kind.Most = w.held
	}
	if w.heldSets > 0 {
		master.HeldSets.Kind.Most = w.heldSets
	}
	kinds := fetch.NewKinds(fetch.Serve(git.New(nil)), fetch.Serve(image.New(nil)), fetch.Serve(helmrepo.New(nil)))
	made.SetUp(distributor.New(wiring.Distributor(made, master, kinds, options)))
	made.Run()
	w.end, w.manager = made.Stop, made
	return w.end
}

// steady fails the test unless something holds before and after all that the distributor reconciles is so again.
func (w *world) steady(holds func() error) {
	w.t.Helper()
	w.manager.Stays(holds, "distributor", "distributor")
}

// seed makes a Seed whose kubeconfig leads to a cluster of the fleet.
func (w *world) seed(name string, kubeconfig []byte) *kkpv1.Seed {
	w.t.Helper()
	expect.Create(w.t, w.master, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: "kubeconfig-" + name},
		Data:       map[string][]byte{"kubeconfig": kubeconfig},
	})
	seed := &kkpv1.Seed{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: name},
		Spec:       kkpv1.SeedSpec{Kubeconfig: kkpv1.ObjectReference{Name: "kubeconfig-" + name}},
	}
	expect.Create(w.t, w.master, seed)
	return seed
}

func kubeconfigOf(cluster string) []byte { return fleet.Shared().Cluster(cluster).Kubeconfig }

// catalogueOf makes an authored catalogue of add-ons given as name and versions.
func (w *world) catalogueOf(name string, addons map[string][]string) *v1.AddonCatalogue {
	object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: name}}
	for addon, versions := range addons {
		object.Spec.Addons = append(object.Spec.Addons, addonOf(addon, versions...))
	}
	return object
}

func addonOf(name string, versions ...string) v1.Addon {
	addon := v1.Addon{Name: v1.AddonName(name)}
	for _, version := range versions {
		addon.Versions = append(addon.Versions, v1.AddonVersion{
			Version:  version,
			Template: &v1.Template{Method: v1.MethodGoTemplate},
			Source:   &v1.Source{Git: &v1.GitSource{Remote: "https://git.example.com/addons.git", Path: name + "/" + version}},
		})
	}
	return addon
}

// merged is a merged catalogue by its name.
func (w *world) merged(name string) *v1.AddonCatalogue {
	return &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: name}}
}

// expectVersions waits until a seed has exactly these versions of an add-on.
func (w *world) expectVersions(cluster, addon string, versions ...string) *v1.AddonCatalogue {
	w.t.Helper()
	return expect.Object(w.t, w.client(cluster), w.merged(addon), func(object *v1.AddonCatalogue) error {
		var have []string
		for _, version := range object.Spec.Addons[0].Versions {
			have = append(have, version.Version)
		}
		if fmt.Sprint(have) != fmt.Sprint(versions) {
			return fmt.Errorf("versions %v, want %v", have, versions)
		}
		return nil
	})
}

func (w *world) expectCondition(object *v1.AddonCatalogue, kind, status, reason string, words ...string) *v1.AddonCatalogue {
	w.t.Helper()
	return expect.HasCondition(w.t, w.master, object, expect.Is(kind, status, reason, words...))
}

// deadKubeconfig leads to a port where nobody listens.
func deadKubeconfig(t *testing.T) []byte {
	t.Helper()
	seed := fleet.Shared().Cluster("seed")
	return bytes.ReplaceAll(seed.Kubeconfig, []byte(seed.URL()), []byte("https://127.0.0.1:1")) // which nobody is given
}
