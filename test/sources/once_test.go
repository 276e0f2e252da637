package sources

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/cmd/wiring/contents"
	"github.com/trellis-addons/trellis/pkg/base/fairqueue"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/gotemplate"
	"github.com/trellis-addons/trellis/pkg/render/kept"
	"github.com/trellis-addons/trellis/test/disk"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	kit "github.com/trellis-addons/trellis/test/world"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	fleet.Main(m, fleet.ClusterOptions{Name: "seed"})
}

const (
	clusters      = 20
	perCluster    = 10 // installations, two of each add-on
	catalogue     = "addon-catalogue"
	patience      = 5 * time.Minute
	lookedAgainIn = 10 * time.Hour // no look but the first one falls into the test
)

// seed is a seed with its catalogue and its sources.
type seed struct {
	t            *testing.T
	client       client.Client
	repositories *fetchtest.Git
	charts       *fetchtest.Charts
	moving       *fetchtest.Repository
	folder       string // of the store
}

func newSeed(t *testing.T) *seed {
	t.Helper()
	s := &seed{
		t: t, repositories: fetchtest.ServeGit(t), charts: fetchtest.ServeCharts(t), folder: disk.TempDir(t),
	}
	s.client = kit.Client(t, fleet.Shared().Cluster("seed").Config)
	expect.Create(s.t, s.client, kit.Namespace(catalogue))
	expect.Create(s.t, s.client, given.AuthoritySecret(catalogue, []byte(string(s.repositories.CA)+string(s.charts.CA))))
	return s
}

// offer puts three add-ons from git and two from a Helm repository into the merged catalogue, and gives their names.
func (s *seed) offer() []string {
	s.t.Helper()
	names := []string{}
	offer := func(name string, source *kubermaticv1.Source) {
		names = append(names, name)
		offered := given.Addon(name, given.Version("1.0.0", source))
		expect.Create(s.t, s.client, given.Merged(catalogue, kubermaticv1.CatalogueCustom, offered))
	}
	for _, name := range []string{"one", "two", "three"} {
		repository := s.repositories.Repository(s.t, name)
		repository.Commit("main", map[string]string{"x.yaml": manifest(name)})
		if name == "one" {
			s.moving = repository
		}
		offer(name, given.Git(repository.URL, ""))
	}
	for _, name := range []string{"four", "five"} {
		s.charts.Add(name, "1.0.0", map[string]string{"templates/x.yaml": manifest(name)})
		offer(name, given.Chart(s.charts.URL, name, "1.0.0"))
	}
	return names
}

func manifest(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
}

// install asks for the add-ons on all clusters. The clusters have no kubeconfig: content is fetched before they are needed.
func (s *seed) install(names []string) {
	s.t.Helper()
	for i := range clusters {
		name := fmt.Sprintf("%02d", i)
		kit.UserCluster(s.t, s.client, name, nil)
		for j := range perCluster {
			addon := names[j%len(names)]
			expect.Create(s.t, s.client, given.Installation("cluster-"+name, fmt.Sprintf("%s-%d", addon, j), addon, "default"))
		}
	}
}

// run starts the controller over the store's folder; end stops both and waits.
func (s *seed) run() (content *store.Store, end func()) {
	s.t.Helper()
	mgr := kit.Seed(s.t, fleet.Shared().Cluster("seed").Config, catalogue)
	network := outbound.New(outbound.Options{AllowCIDRs: fetchtest.Loopback})
	kinds := contents.Kinds(network)
	content, err := store.New(store.Options{Folder: s.folder, Kinds: kinds, Interval: lookedAgainIn})
	expect.NoError(s.t, err)
	renders := kept.New(kept.Options{
		Methods: map[string]render.Renderer{string(kubermaticv1.MethodGoTemplate): gotemplate.New()}, Values: gotemplate.New(),
	})
	key := []byte("key")
	dependencies, err := wiring.AddonInstallation(mgr.Context(), mgr.Seed, mergedcatalogue.New(logr.Discard()), wiring.InstallationParts{
		Namespace: catalogue, SourceKinds: kinds, Store: content, Renders: renders, Records: wiring.Records(mgr, key), InputsKey: key,
		Options: addoninstallation.Options{CatalogueNamespace: catalogue, DriftInterval: time.Hour, Limits: fairqueue.Limits{Workers: 10}},
	})
	expect.NoError(s.t, err)
	mgr.SetUp(addoninstallation.New(dependencies))
	mgr.Run()
	return content, func() {
		mgr.Stop()
		network.Close()
	}
}

// requests are the fetches that the servers counted, and everything that they were asked.
func (s *seed) requests() (fetches, all int) {
	for _, seen := range append(s.repositories.Requests(), s.charts.Requests()...) {
		all++
		pack := seen.Method == http.MethodPost && strings.HasSuffix(seen.Path, "/git-upload-pack")
		if pack || strings.HasSuffix(seen.Path, ".tgz") {
			fetches++
		}
	}
	return fetches, all
}

// expectFetched waits until a number of installations has content, and gives the digests by add-on.
func (s *seed) expectFetched(count int) map[string]string {
	s.t.Helper()
	digests := map[string]string{}
	expect.Eventually(s.t, patience, func() error {
		var list kubermaticv1.AddonInstallationList
		if err := s.client.List(s.t.Context(), &list); err != nil {
			return err
		}
		done, last := 0, ""
		for _, item := range list.Items {
			if item.Status.Artifact == nil {
				last = fmt.Sprintf("%s: %v", item.Name, item.Status.Conditions)
				continue
			}
			done++
			name := string(item.Spec.AddonRef.Name)
			if known := digests[name]; known != "" && known != item.Status.Artifact.Digest {
				delete(digests, name)
				return fmt.Errorf("add-on %q has contents %s and %s", name, known, item.Status.Artifact.Digest)
			}
			digests[name] = item.Status.Artifact.Digest
		}
		if done != count {
			return fmt.Errorf("%d of %d have content; one that has none: %s", done, count, last)
		}
		return nil
	})
	return digests
}

// 200 installations of five add-ons over 20 clusters cost five fetches, and a restart none; a branch that moves costs one.
func TestOneFetchForAWholeSeed(t *testing.T) {
	s := newSeed(t)
	s.install(s.offer())
	_, end := s.run()
	defer func() { end() }()
	before := s.expectFetched(clusters * perCluster)
	fetches, all := s.requests()
	if fetches != 5 || len(before) != 5 {
		t.Errorf("the servers counted %d fetches for %d add-ons, want 5", fetches, len(before))
	}
	t.Logf("%d installations over %d clusters: %d fetches, %d requests", clusters*perCluster, clusters, fetches, all)
	end()

	content, endAgain := s.run()
	end = endAgain
	expect.Eventually(t, patience, func() error {
		if hits := content.Stats().Hits; hits < clusters*perCluster {
			return fmt.Errorf("%d of %d installations asked again", hits, clusters*perCluster)
		}
		return nil
	})
	if _, after := s.requests(); after != all {
		t.Errorf("a restart cost %d requests", after-all)
	}

	s.moving.Commit("main", map[string]string{"x.yaml": manifest("moved")})
	moved := &kubermaticv1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster-07", Name: "one-0"}}
	again := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"now"}}}`, kubermaticv1.AnnotationReconcileAt))
	if err := s.client.Patch(t.Context(), moved, again); err != nil { // the controller writes to it, too
		t.Fatal(err)
	}
	expect.Eventually(t, patience, func() error { // one asks; the branch moves for all who have it
		now := s.expectFetched(clusters * perCluster)
		for name, digest := range now {
			if (digest != before[name]) != (name == "one") {
				return fmt.Errorf("add-on %q has content %s, before %s", name, digest, before[name])
			}
		}
		return nil
	})
	if after, _ := s.requests(); after != fetches+1 {
		t.Errorf("a branch that moved cost %d fetches, want 1", after-fetches)
	}
}
