package sets_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/cmd/wiring/contents"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	kit "github.com/trellis-addons/trellis/test/world"
)

// The user clusters. Amber, birch and dune have API servers of their own; cedar's is that of a seed, which is the master's too where a world
// has one seed only.
const (
	amber = "amber"
	birch = "birch"
	cedar = "cedar"
	dune  = "dune"
)

// The API servers of master and seeds.
const (
	platformServer = "platform"
	masterServer   = "master"
	southServer    = "south"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	var all []fleet.ClusterOptions
	for _, name := range []string{platformServer, amber, birch, masterServer, southServer, dune} {
		all = append(all, fleet.ClusterOptions{Name: name}) // they die, and are restored
	}
	fleet.Main(m, all...)
}

// world is a platform with user clusters, with namespaces and Clusters of the test's own.
type world struct {
	t                   *testing.T
	platform, catalogue string
	// target is the namespace of add-ons in user clusters.
	target string
	master client.Client
	seeds  map[string]*seed
	users  map[string]client.Client
	// homes are the seeds of the user clusters.
	homes    map[string]*seed
	clusters map[string]*kkpv1.Cluster
	sources  *fleet.Sources
	// commit of the manifests that all versions have, where their source is git.
	commit string
	// keyed says that the seed's controllers read the key of marks, which the master has brought before they start.
	keyed bool
	// program is the master manager's, where a test runs one.
	program *fleet.Process
}

// placed is a user cluster's seed, the API server that it has, and the ring that it is in.
type placed struct{ cluster, seed, server, ring string }

var worlds int

// newWorld has one seed, whose API server is the master's too, and amber for a canary.
func newWorld(t *testing.T) *world {
	t.Helper()
	return worldOf(t, platformServer, map[string]string{"seed": platformServer}, []placed{
		{amber, "seed", amber, "0"}, {birch, "seed", birch, "1"}, {cedar, "seed", platformServer, "1"},
	})
}

func worldOf(t *testing.T, master string, seeds map[string]string, clusters []placed) *world {
	t.Helper()
	worlds++
	w := &world{
		t: t, platform: fmt.Sprintf("platform-%d", worlds), catalogue: fmt.Sprintf("catalogue-%d", worlds),
		target: fmt.Sprintf("there-%d", worlds), sources: fleet.SourcesForTest(t), master: clientOf(t, master),
		seeds: map[string]*seed{}, users: map[string]client.Client{}, homes: map[string]*seed{}, clusters: map[string]*kkpv1.Cluster{},
	}
	expect.Create(t, w.master, kit.Namespace(w.platform), given.AuthoritySecret(w.platform, w.sources.CA))
	t.Cleanup(w.clear)
	for name, server := range seeds {
		w.addSeed(name, server, server == master)
	}
	for _, one := range clusters {
		w.addCluster(one)
	}
	var err error
	if w.commit, err = w.sources.Commit("addons", map[string]string{"all.yaml": manifests}); err != nil {
		t.Fatal(err)
	}
	return w
}

func clientOf(t *testing.T, server string) client.Client {
	t.Helper()
	return client.WithFieldOwner(kit.Client(t, fleet.Shared().Cluster(server).Config), "test")
}

// addCluster makes a user cluster, and the Cluster that stands for it on its seed.
func (w *world) addCluster(one placed) {
	w.t.Helper()
	server := fleet.Shared().Cluster(one.server)
	user, err := client.New(server.Config, client.Options{Scheme: wiring.Scheme()})
	expect.NoError(w.t, err)
	expect.Create(w.t, user, kit.Namespace(w.target))
	home := w.seeds[one.seed]
	w.users[one.cluster], w.homes[one.cluster], w.clusters[one.cluster] = user, home, home.cluster(one)
}

// home is where a Cluster and its installations are.
func (w *world) home(cluster string) client.Client { return w.homes[cluster].client }

// clear lets everything go: a test may end with the controllers stopped.
func (w *world) clear() {
	clients := []client.Client{w.master}
	for _, one := range w.seeds {
		clients = append(clients, one.client)
	}
	for _, from := range clients {
		for _, list := range []client.ObjectList{&v1.AddonSetList{}, &v1.AddonInstallationList{}, &kkpv1.ClusterList{}} {
			w.free(from, list)
		}
	}
}

// free takes the finalizers off the objects of a kind, and deletes them.
func (w *world) free(from client.Client, list client.ObjectList) {
	ctx := context.Background()
	if err := from.List(ctx, list); err != nil {
		w.t.Error(err)
	}
	without := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	err := meta.EachListItem(list, func(item runtime.Object) error {
		object := item.(client.Object)
		return errors.Join(client.IgnoreNotFound(from.Patch(ctx, object, without)), client.IgnoreNotFound(from.Delete(ctx, object)))
	})
	if err != nil {
		w.t.Error(err)
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
	w.runMaster()
	w.seeds["seed"].runSets()
}

// runMaster runs the master's distributor until the returned function is called.
func (w *world) runMaster() (stop func()) {
	w.t.Helper()
	onMaster := kit.Master(w.t, fleet.Shared().Cluster(platformServer).Config)
	master, err := distributor.NewMaster(onMaster, w.platform)
	expect.NoError(w.t, err)
	onMaster.SetUp(distributor.New(wiring.Distributor(onMaster, master, kinds(), distributor.Options{
		Namespace: w.platform, CatalogueNamespace: w.catalogue, KKPVersion: "v2.31.0",
	})))
	onMaster.Run()
	return onMaster.Stop
}

func kinds() fetch.Kinds {
	return contents.Kinds(outbound.New(outbound.Options{AllowCIDRs: fetchtest.Loopback}))
}

// runInstallations runs the seed's controller of installations until the returned function is called.
func (w *world) runInstallations() (stop func()) {
	w.t.Helper()
	return w.seeds["seed"].runInstallations()
}

// put makes an object of the platform, or changes it.
func put[T client.Object](w *world, object T, change func(T)) {
	w.t.Helper()
	expect.Put(w.t, w.master, object, change)
}
