package addoninstallation_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/cmd/wiring/contents"
	"github.com/trellis-addons/trellis/pkg/base/fairqueue"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/access"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/gotemplate"
	"github.com/trellis-addons/trellis/pkg/render/kept"
	"github.com/trellis-addons/trellis/pkg/values/images"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/disk"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	kit "github.com/trellis-addons/trellis/test/world"
)

// world is one cluster that is seed and user cluster, with a controller that serves one Cluster object.
type world struct {
	t       testing.TB
	seed    client.Client
	sources *fleet.Sources
	// id identifies the world: its objects in the cluster are named after it, since tests run in parallel.
	id string
	// namespace of the Cluster, catalogue that of merged catalogues.
	namespace, catalogue string
	cluster              *kkpv1.Cluster
	// neighbours are the namespaces of further Clusters, with the same API server as their user cluster.
	neighbours []string
	// renderers by method; nil: templates are rendered in process.
	renderers map[string]render.Renderer
	// valuesRenderer, if set, renders templates of values.
	valuesRenderer render.ValuesRenderer
	// concurrency is how many installations are reconciled at a time; 0 is 2.
	concurrency int
	// driftInterval is the time between two comparisons; 0 is a minute.
	driftInterval time.Duration
	// orderTimeout limits the wait for others; 0 is ten minutes.
	orderTimeout time.Duration
	// goingTime limits removals from a cluster that is being deleted; 0 is ten minutes.
	goingTime time.Duration
	// passes are the limits of the queue, if not the defaults.
	queueLimits fairqueue.Limits
	// identities: user clusters are compared with the recorded ones.
	identities bool
	// kinds of clusters; none are KKP's.
	kinds cluster.Kinds
	// restrictions are those of the seed for add-ons of Custom catalogues.
	restrictions catalogue.Restrictions
	// records, if set, wraps the release records.
	records func(addoninstallation.Records) addoninstallation.Records
	// client, if set, wraps the controller's client.
	client func(client.Client) client.Client
	// platform, if set, wraps the platform.
	platform func(addoninstallation.Platform) addoninstallation.Platform
	// store, if set, wraps the content store.
	store func(fetch.Store) fetch.Store
	// worker is the name of the controller that is started next.
	worker string
	// network has mirrors, and the resolver of names.
	network outbound.Options
	// images are the image mirrors; empty: one.
	images []string
	// pull is the name of the platform's pull Secret.
	pull string
	// pullAway is how long it has to be missing before its copies are deleted.
	pullAway time.Duration
	// agents is the platform's offer to agents; nil: none. keeper, if set, wraps it.
	agents *access.Options
	keeper func(addoninstallation.Access) addoninstallation.Access
	// through, if set, is the controller's connection to the seed.
	through *rest.Config
	// logger, if set, gets the controller's log.
	logger logr.Logger
	// providers are the kinds that objectRef may name.
	providers []schema.GroupKind
	// marks distinguish merged catalogues from others.
	marks *mergedcatalogue.Marks
	// figures are those of the controller that was started last, and manager is the manager that runs it.
	figures *prometheus.Registry
	manager *kit.Manager
	// previews are made with the dependencies of the controller that was started last.
	previews *addoninstallation.Previewer
	// clock, if set, is the controller's; reconciliations may then take any time on it.
	clock *clocktesting.FakeClock
	// held is how many bytes the cache may use for installations; 0: the program's default.
	held int64
}

// installKinds installs our kinds, those of KKP and of Cluster API: parallel worlds all have them from the beginning.
var installKinds = sync.OnceValue(func() error {
	folders, err := fleet.CRDFolders()
	if err != nil {
		return err
	}
	config, ctx := fleet.Shared().Cluster("both").Config, context.Background()
	return errors.Join(
		fleet.InstallCRDs(ctx, config, append(folders, "../../clusters/cluster/testdata/kkp", "testdata/configs")...), clusterapi.InstallCRDs(ctx, config))
})

func newWorld(t testing.TB) *world {
	t.Helper()
	if err := installKinds(); err != nil {
		t.Fatal(err)
	}
	id := kit.Name(t)
	id = id[:min(12, len(id)-9)] + id[len(id)-9:] // its end makes it unique, and names derived from it have at most 63 characters
	w := &world{
		t: t, sources: fleet.SourcesForTest(t), id: id, namespace: "cluster-" + id, catalogue: "catalogue-" + id,
		marks: mergedcatalogue.New(logr.Discard()),
	}
	made, err := client.New(fleet.Shared().Cluster("both").Config, client.Options{Scheme: wiring.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	w.seed = client.WithFieldOwner(made, "test")
	if _, err := w.sources.Commit("addons", map[string]string{
		"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {version: '{{ .Variables.version }}'}\n",
	}); err != nil {
		t.Fatal(err)
	}
	w.layOut()
	return w
}

// unique is a name that no other world uses.
func (w *world) unique(name string) string { return name + "-" + w.id }

// layOut creates the Cluster, and the namespace of merged catalogues with the sources' authority.
func (w *world) layOut() {
	w.t.Helper()
	w.create(kit.Namespace(w.catalogue))
	w.create(given.AuthoritySecret(w.catalogue, w.sources.CA))
	w.cluster = w.addCluster(w.namespace)
}

// addNeighbour creates another Cluster, before the controller is started, and returns its namespace.
func (w *world) addNeighbour() string {
	w.t.Helper()
	namespace := fmt.Sprintf("%s-n%d", w.namespace, len(w.neighbours))
	w.addCluster(namespace)
	w.neighbours = append(w.neighbours, namespace)
	return namespace
}

// addCluster creates a ready Cluster, its namespace and its kubeconfig.
func (w *world) addCluster(namespace string) *kkpv1.Cluster {
	w.t.Helper()
	made := kit.UserCluster(w.t, w.seed, strings.TrimPrefix(namespace, "cluster-"), fleet.Shared().Cluster("both").Kubeconfig)
	w.removeAtTheEnd(made)
	return made
}

// removeAtTheEnd deletes a cluster-scoped object, which other worlds would still see.
func (w *world) removeAtTheEnd(object client.Object) {
	gone := object.DeepCopyObject().(client.Object)
	w.t.Cleanup(func() {
		ctx := context.WithoutCancel(w.t.Context())
		_ = w.seed.Patch(ctx, gone, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		_ = w.seed.Delete(ctx, gone)
	})
}

// ofClusters are the caches of the Clusters' namespaces.
func (w *world) ofClusters() map[string]cache.Config {
	caches := map[string]cache.Config{w.namespace: {}}
	for _, name := range w.neighbours {
		caches[name] = cache.Config{}
	}
	return caches
}

// running sets the version of the Cluster.
func (w *world) running(version string) {
	w.t.Helper()
	before := w.cluster.DeepCopy()
	w.cluster.Status.Versions.ControlPlane = version
	expect.PatchStatus(w.t, w.seed, w.cluster, client.MergeFrom(before))
}

// create creates an object. Cluster-scoped objects are deleted with the world, except for namespaces: to remove one
// takes longer than most tests.
func (w *world) create(object client.Object) {
	w.t.Helper()
	expect.Create(w.t, w.seed, object)
	if _, isNamespace := object.(*corev1.Namespace); object.GetNamespace() == "" && !isNamespace {
		w.removeAtTheEnd(object)
	}
}

// start runs the controller until the end of the test.
func (w *world) start() {
	w.t.Helper()
	w.t.Cleanup(w.startUntil())
}

// startUntil runs the controller until the returned function is called.
func (w *world) startUntil() (stop func()) {
	w.t.Helper()
	kinds := w.kinds
	if kinds.Served == nil {
		kinds = cluster.OnlyKKP
	}
	config := cmp.Or(w.through, fleet.Shared().Cluster("both").Config)
	if w.agents != nil {
		config = w.withOwnLists(config)
	}
	made := kit.SeedOf(w.t, config, w.catalogue, kinds, func(options *manager.Options) {
		options.Logger = w.logged()
		options.Cache.ByObject[&kubermaticv1.AddonInstallation{}] = cache.ByObject{Namespaces: w.ofClusters()}
	})
	if w.held > 0 {
		made.Held.Kind.Most = w.held
	}
	dependencies := w.dependencies(made)
	w.previews = addoninstallation.NewPreviewer(dependencies)
	made.SetUp(addoninstallation.New(dependencies))
	made.Run()
	w.manager = made
	return made.Stop
}

func (w *world) dependencies(made *kit.Manager) addoninstallation.Dependencies {
	w.t.Helper()
	network := w.network
	network.AllowCIDRs = fetchtest.Loopback
	kinds := contents.Kinds(outbound.New(network))
	content, err := store.New(store.Options{Folder: disk.TempDir(w.t), Kinds: kinds, Interval: time.Minute, Mirrors: network.Mirrors})
	if err != nil {
		w.t.Fatal(err)
	}
	if w.renderers == nil {
		w.renderers = map[string]render.Renderer{string(kubermaticv1.MethodGoTemplate): gotemplate.New()}
	}
	if w.valuesRenderer == nil {
		w.valuesRenderer = gotemplate.New()
	}
	if w.images == nil {
		w.images = []string{"registry.example.com=mirror.example.com"}
	}
	mirrors, err := images.ParseMirrors(w.images)
	if err != nil {
		w.t.Fatal(err)
	}
	key := []byte("key")
	parts := wiring.InstallationParts{
		Namespace: w.catalogue, AllowCIDRs: fetchtest.Loopback, SourceKinds: kinds, Store: content, Images: images.Rules{Mirrors: mirrors, PullSecret: w.pull},
		PullSecret: w.pull, ProviderKinds: w.providers,
		Renders: kept.New(kept.Options{Methods: w.renderers, Values: w.valuesRenderer}),
		Records: wiring.Records(made, key), InputsKey: key, Agents: w.agents,
		Options: addoninstallation.Options{
			CatalogueNamespace: w.catalogue, WorkerName: w.worker, DriftInterval: cmp.Or(w.driftInterval, time.Minute),
			OrderTimeout: cmp.Or(w.orderTimeout, 10*time.Minute), GoingTime: w.goingTime,
			Restrictions: w.restrictions, Limits: cmp.Or(w.queueLimits, w.limits()),
		},
	}
	if w.identities {
		parts.Identities = cluster.NewIdentities(made.GetClient(), made.GetAPIReader(), made.Clusters, w.catalogue)
	}
	dependencies, err := wiring.AddonInstallation(made.Context(), made.Seed, w.marks, parts)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.pull != "" {
		dependencies.PullSecret.Away = w.pullAway
	}
	if w.clock != nil {
		dependencies.Clock = w.clock
	}
	w.figures = prometheus.NewPedanticRegistry()
	dependencies.Metrics = addoninstallation.NewMetrics(w.figures)
	if w.keeper != nil {
		dependencies.Access = w.keeper(dependencies.Access)
	}
	if w.records != nil {
		dependencies.Records = w.records(dependencies.Records)
	}
	if w.store != nil {
		dependencies.Store = w.store(dependencies.Store)
	}
	if w.platform != nil {
		dependencies.Platform = w.platform(dependencies.Platform)
	}
	if w.client != nil {
		dependencies.Client = w.client(dependencies.Client)
	}
	return dependencies
}

// logged returns the controller's logger, which fails the test if a reconciliation ends in a panic, since the next one
// hides that.
func (w *world) logged() logr.Logger {
	if w.logger.GetSink() != nil {
		return w.logger
	}
	return funcr.New(func(_, line string) {
		if strings.Contains(line, "panic: ") {
			w.t.Errorf("a pass ended in a panic: %s", line)
		}
	}, funcr.Options{})
}

// limits are those of the manager, for that many workers.
func (w *world) limits() fairqueue.Limits {
	limits := fairqueue.Limits{Workers: cmp.Or(w.concurrency, 2)}
	if w.clock != nil {
		limits.SlowAfter, limits.Deadline = 1000*time.Hour, 1000*time.Hour
	}
	return limits
}

// expectEvent waits for an event about an object whose message contains all of these words.
func (w *world) expectEvent(reason string, about client.Object, words ...string) {
	w.t.Helper()
	expect.Event(w.t, w.seed, about, reason, words...)
}
