package sets_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/controllers/addon"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/pkg/controllers/addonset"
	"github.com/trellis-addons/trellis/pkg/controllers/coreaddon"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor"
	"github.com/trellis-addons/trellis/pkg/fairqueue"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
	"github.com/trellis-addons/trellis/pkg/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/gotemplate"
	"github.com/trellis-addons/trellis/pkg/render/images"
	"github.com/trellis-addons/trellis/pkg/render/kept"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	kit "github.com/trellis-addons/trellis/test/world"
)

// User clusters: amber is the canary. Cedar's API server is the platform's too.
const (
	amber = "amber"
	birch = "birch"
	cedar = "cedar"
)

// servers are the API servers of user clusters.
var servers = map[string]string{amber: amber, birch: birch, cedar: platformServer}

// platformServer is that of master and seed.
const platformServer = "platform"

func TestMain(m *testing.M) {
	fleet.Main(m, fleet.ClusterOptions{Name: platformServer}, fleet.ClusterOptions{Name: amber}, fleet.ClusterOptions{Name: birch})
}

// world is a platform with three user clusters, with namespaces and Clusters of the test's own.
type world struct {
	t                   *testing.T
	platform, catalogue string
	// target is the namespace of add-ons in user clusters.
	target   string
	seed     client.Client
	users    map[string]client.Client
	clusters map[string]*kkpv1.Cluster
	sources  *fleet.Sources
	marks    *mergedcatalogue.Marks
	// commit of the manifests that all versions have, where their source is git.
	commit string
}

var worlds int

func newWorld(t *testing.T) *world {
	t.Helper()
	worlds++
	w := &world{
		t: t, platform: fmt.Sprintf("platform-%d", worlds), catalogue: fmt.Sprintf("catalogue-%d", worlds),
		target: fmt.Sprintf("there-%d", worlds), sources: fleet.SourcesForTest(t), marks: mergedcatalogue.New(logr.Discard()),
		users: map[string]client.Client{}, clusters: map[string]*kkpv1.Cluster{},
	}
	w.seed = client.WithFieldOwner(kit.Client(t, fleet.Shared().Cluster(platformServer).Config), "test")
	kit.Create(t, w.seed, kit.Namespace(w.platform), kit.Namespace(w.catalogue), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.platform, Name: "authority", Labels: map[string]string{v1.LabelUse: v1.UseSource},
			Annotations: map[string]string{v1.AnnotationHosts: "127.0.0.1"},
		},
		Data: map[string][]byte{"ca.crt": w.sources.CA},
	}, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: "kubeconfig-seed"},
		Data:       map[string][]byte{"kubeconfig": fleet.Shared().Cluster(platformServer).Kubeconfig},
	}, &kkpv1.Seed{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: "seed"},
		Spec:       kkpv1.SeedSpec{Kubeconfig: kkpv1.ObjectReference{Name: "kubeconfig-seed"}},
	})
	for name, server := range servers {
		user, err := client.New(fleet.Shared().Cluster(server).Config, client.Options{Scheme: wiring.Scheme()})
		if err != nil {
			t.Fatal(err)
		}
		kit.Create(t, user, kit.Namespace(w.target))
		ring := "1"
		if name == amber {
			ring = "0"
		}
		w.users[name], w.clusters[name] = user, w.cluster(name, map[string]string{"ring": ring})
		kit.Create(t, w.seed, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.clusters[name].Status.NamespaceName, Name: "internal-admin-kubeconfig"},
			Data:       map[string][]byte{"kubeconfig": fleet.Shared().Cluster(server).Kubeconfig},
		})
	}
	t.Cleanup(w.clear)
	var err error
	if w.commit, err = w.sources.Commit("addons", map[string]string{"all.yaml": manifests}); err != nil {
		t.Fatal(err)
	}
	return w
}

// cluster makes a Cluster that is up.
func (w *world) cluster(name string, labels map[string]string) *kkpv1.Cluster {
	w.t.Helper()
	name = fmt.Sprintf("%s-%d", name, worlds)
	made := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	made.Spec.Cloud.ProviderName, made.Spec.DisableCSIDriver = "bringyourown", true
	kit.Create(w.t, w.seed, kit.Namespace("cluster-"+name), made)
	made.Status.Versions.ControlPlane = "v1.36.3"
	made.Status.NamespaceName, made.Status.ExtendedHealth.APIServer = "cluster-"+name, kkpv1.HealthUp
	if err := w.seed.Status().Update(w.t.Context(), made); err != nil {
		w.t.Fatal(err)
	}
	return made
}

// clear lets everything go: a test may end with the controllers stopped.
func (w *world) clear() {
	ctx := context.Background()
	var sets v1.AddonSetList
	var installations v1.AddonInstallationList
	var clusters kkpv1.ClusterList
	for _, list := range []client.ObjectList{&sets, &installations, &clusters} {
		if err := w.seed.List(ctx, list); err != nil {
			w.t.Error(err)
		}
	}
	var all []client.Object
	for i := range sets.Items {
		all = append(all, &sets.Items[i])
	}
	for i := range installations.Items {
		all = append(all, &installations.Items[i])
	}
	for i := range clusters.Items {
		all = append(all, &clusters.Items[i])
	}
	free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	for _, object := range all {
		if err := w.seed.Patch(ctx, object, free); client.IgnoreNotFound(err) != nil {
			w.t.Error(err)
		}
		if err := w.seed.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			w.t.Error(err)
		}
	}
}

// run runs all controllers until the end of the test.
func (w *world) run() {
	w.t.Helper()
	w.runPlatform()
	w.runInstallations()
}

// runPlatform runs the master's distributor, and all controllers of the seed but that of installations.
func (w *world) runPlatform() {
	w.t.Helper()
	config := fleet.Shared().Cluster(platformServer).Config
	onMaster := kit.Master(w.t, config)
	master, err := distributor.NewMaster(onMaster, w.platform)
	if err != nil {
		w.t.Fatal(err)
	}
	onMaster.SetUp(distributor.New(wiring.Distributor(onMaster, master, w.kinds(), distributor.Options{
		Namespace: w.platform, CatalogueNamespace: w.catalogue, KKPVersion: "v2.31.0",
	})))
	onMaster.Run()
	onSeed := kit.Seed(w.t, config, w.catalogue)
	onSeed.SetUp(
		addon.New(wiring.Addon(onSeed.Seed, w.marks, addon.Options{CatalogueNamespace: w.catalogue})),
		coreaddon.New(wiring.CoreAddon(onSeed.Seed, w.marks, coreaddon.Options{Namespace: w.platform, CatalogueNamespace: w.catalogue})),
		addonset.New(wiring.AddonSet(onSeed.Seed, w.marks, addonset.Options{
			CatalogueNamespace: w.catalogue, StatusInterval: 100 * time.Millisecond,
		})),
	)
	onSeed.Run()
}

func (w *world) kinds() fetch.Kinds {
	return wiring.SourceKinds(outbound.New(outbound.Options{AllowCIDRs: fetchtest.Loopback}))
}

// runInstallations runs the controller of installations until the returned function is called.
func (w *world) runInstallations() (stop func()) {
	w.t.Helper()
	made := kit.Seed(w.t, fleet.Shared().Cluster(platformServer).Config, w.catalogue)
	kinds := w.kinds()
	content, err := store.New(store.Options{Folder: w.t.TempDir(), Kinds: kinds, Interval: time.Second})
	if err != nil {
		w.t.Fatal(err)
	}
	key := []byte("key")
	dependencies, err := wiring.AddonInstallation(made.Context(), made.Seed, w.marks, wiring.InstallationParts{
		Namespace: w.platform, SourceKinds: kinds, Store: content,
		Renders: kept.New(kept.Options{
			Methods: map[string]render.Renderer{string(v1.MethodGoTemplate): gotemplate.New()}, Values: gotemplate.New(),
		}),
		Records: wiring.Records(made, key), InputsKey: key, Images: images.Rules{},
		Options: addoninstallation.Options{
			CatalogueNamespace: w.catalogue, DriftInterval: time.Second, OrderTimeout: 10 * time.Minute, Passes: fairqueue.Limits{Workers: 4},
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	made.SetUp(addoninstallation.New(dependencies))
	made.Run()
	return made.Stop
}

// put makes an object of the platform, or changes it.
func put[T client.Object](w *world, object T, change func(T)) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		err := w.seed.Get(w.t.Context(), client.ObjectKeyFromObject(object), object)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		change(object)
		if err != nil {
			object.SetResourceVersion("")
			return w.seed.Create(w.t.Context(), object)
		}
		return w.seed.Update(w.t.Context(), object)
	})
}
