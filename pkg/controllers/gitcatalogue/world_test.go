package gitcatalogue_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor"
	"github.com/trellis-addons/trellis/pkg/controllers/gitcatalogue"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/git"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
	"github.com/trellis-addons/trellis/test/disk"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	kit "github.com/trellis-addons/trellis/test/world"
)

func TestMain(m *testing.M) { fleet.Main(m, fleet.ClusterOptions{Name: "master"}) }

// world is a master with a platform namespace of the test's own, and a git server with one
// repository.
type world struct {
	t          *testing.T
	platform   string
	client     client.Client
	gate       *gate
	server     *fetchtest.Git
	repository *fetchtest.Repository
	end        func()
	// manager is that of the controllers that were started last.
	manager *kit.Manager
	// clock is the distributor's; nil: the real one.
	clock clock.WithTicker
	// asking is the clock for what annotation reconcile-at asks for.
	asking *clocktesting.FakeClock
	// wrap is how calls of the controllers reach the master; nil: directly.
	wrap transport.WrapperFunc
}

// newWorld has a test run beside others: the controller sees what is in the platform namespace only.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return aloneInWorld(t)
}

// aloneInWorld is for a test that also starts the distributor, which reports catalogues in all other namespaces as misplaced.
func aloneInWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, platform: kit.Name(t), gate: &gate{}, end: func() {}, asking: clocktesting.NewFakeClock(time.Now())}
	w.client = client.WithFieldOwner(kit.Client(t, fleet.Shared().Cluster("master").Config), "test")
	expect.Create(w.t, w.client, kit.Namespace(w.platform))
	w.server = fetchtest.ServeGit(t, w.gate.wrap)
	w.repository = w.server.Repository(t, "catalogue")
	expect.Create(w.t, w.client, given.MarkedSecret(v1.UseSource, w.platform, "ca", map[string][]byte{"ca.crt": w.server.CA}))
	t.Cleanup(func() {
		w.end()
		if err := w.client.DeleteAllOf(context.Background(), &v1.AddonCatalogue{}, client.InNamespace(w.platform)); err != nil {
			t.Error(err)
		}
	})
	return w
}

// gate stands before the git server, and can answer in its place.
type gate struct {
	mutex  sync.Mutex
	answer http.HandlerFunc
	next   http.Handler
}

func (g *gate) set(answer http.HandlerFunc) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.answer = answer
}

func (g *gate) wrap(next http.Handler) http.Handler {
	g.next = next
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mutex.Lock()
		answer := g.answer
		g.mutex.Unlock()
		if answer != nil {
			answer(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hangUp is a host that is down: connections break before they say anything.
func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// start runs the controller, and the distributor with it where a namespace for merged catalogues is
// named, over a store on a folder; "" is a new one. The function ends it.
func (w *world) start(folder, merged string) (stop func()) {
	w.t.Helper()
	if folder == "" {
		folder = disk.TempDir(w.t)
	}
	network := outbound.New(outbound.Options{AllowCIDRs: fetchtest.Loopback})
	kinds := fetch.NewKinds(fetch.Serve(git.New(network)))
	content, err := store.New(store.Options{Folder: folder, Kinds: kinds, FirstPause: 100 * time.Millisecond, LastPause: time.Second})
	if err != nil {
		w.t.Fatal(err)
	}
	config := rest.CopyConfig(fleet.Shared().Cluster("master").Config)
	if w.wrap != nil {
		config.Wrap(w.wrap)
	}
	made := kit.Master(w.t, config)
	w.manager = made
	w.setUp(made, content, kinds, merged)
	made.Run()
	w.end = sync.OnceFunc(func() {
		made.Stop()
		if err := content.Close(); err != nil {
			w.t.Error(err)
		}
		network.Close()
	})
	return w.end
}

// steady fails the test unless something holds before and after all catalogues are reconciled again.
func (w *world) steady(holds func() error) {
	w.t.Helper()
	w.manager.Stays(holds, "gitcatalogue")
}

func (w *world) setUp(made *kit.Manager, content *store.Store, kinds fetch.Kinds, merged string) {
	w.t.Helper()
	master, err := distributor.NewMaster(made, w.platform)
	if err != nil {
		w.t.Fatal(err)
	}
	made.SetUp(gitcatalogue.New(wiring.GitCatalogue(made, master, content, kinds, gitcatalogue.Options{Namespace: w.platform, Clock: w.asking})))
	if merged != "" {
		options := distributor.Options{Namespace: w.platform, CatalogueNamespace: merged, KKPVersion: "v2.31.0", Clock: w.clock}
		made.SetUp(distributor.New(wiring.Distributor(made, master, kinds, options)))
	}
}

// catalogue is one in git, at the world's repository.
func (w *world) catalogue(name string, change ...func(*v1.CatalogueGit)) *v1.AddonCatalogue {
	object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: name}}
	object.Spec.Git = &v1.CatalogueGit{
		Remote: v1.GitRemote(w.repository.URL), Path: "catalogue", CASecretRef: &v1.LocalReference{Name: "ca"},
	}
	for _, set := range change {
		set(object.Spec.Git)
	}
	return object
}

// file is a file of a catalogue with add-ons of one version each, given as name=version.
func file(addons ...string) string {
	text := ""
	for i := 0; i+1 < len(addons); i += 2 {
		text += fmt.Sprintf("- name: %s\n  versions:\n  - version: %q\n    template: {method: go-template}\n"+
			"    source: {git: {remote: \"https://git.example.com/addons.git\", path: %s}}\n", addons[i], addons[i+1], addons[i])
	}
	return text
}

// commit puts a commit with these files below the catalogue's path on branch main.
func (w *world) commit(files map[string]string) string {
	w.t.Helper()
	below := map[string]string{"README.md": "x"}
	for name, content := range files {
		below["catalogue/"+name] = content
	}
	return w.repository.Commit("main", below)
}

var looks atomic.Int64

// look has the controller look at the repository now.
func (w *world) look(object *v1.AddonCatalogue) {
	w.t.Helper()
	w.asking.Step(10 * time.Second)
	w.ask(object)
}

// ask has the controller look at the repository as soon as it may be asked again.
func (w *world) ask(object *v1.AddonCatalogue) {
	w.t.Helper()
	expect.Annotate(w.t, w.client, object, v1.AnnotationReconcileAt, strconv.FormatInt(looks.Add(1), 10))
}

// children are what was generated from a catalogue, by add-on.
func (w *world) children(parent *v1.AddonCatalogue) map[string]*v1.AddonCatalogue {
	w.t.Helper()
	var list v1.AddonCatalogueList
	err := w.client.List(w.t.Context(), &list, client.InNamespace(w.platform), client.MatchingLabels{v1.LabelRole: v1.RoleGenerated})
	if err != nil {
		w.t.Fatal(err)
	}
	found := map[string]*v1.AddonCatalogue{}
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], parent) && len(list.Items[i].Spec.Addons) == 1 {
			found[string(list.Items[i].Spec.Addons[0].Name)] = &list.Items[i]
		}
	}
	return found
}

// expectAddons waits until exactly these add-ons were generated, given as name, version, and the
// status says so.
func (w *world) expectAddons(parent *v1.AddonCatalogue, revision string, addons ...string) map[string]*v1.AddonCatalogue {
	w.t.Helper()
	want := map[string]string{}
	for i := 0; i+1 < len(addons); i += 2 {
		want[addons[i]] = addons[i+1]
	}
	var found map[string]*v1.AddonCatalogue
	expect.Object(w.t, w.client, parent, func(object *v1.AddonCatalogue) error {
		found = w.children(object)
		if object.Status.Revision != revision || int(object.Status.Addons) != len(want) {
			return fmt.Errorf("revision %q, %d add-ons: %v", object.Status.Revision, object.Status.Addons, object.Status.Conditions)
		}
		return sameVersions(found, want)
	})
	return found
}

func sameVersions(found map[string]*v1.AddonCatalogue, want map[string]string) error {
	have := map[string]string{}
	for name, child := range found {
		have[name] = child.Spec.Addons[0].Versions[0].Version
	}
	if !maps.Equal(have, want) {
		return fmt.Errorf("add-ons %v, want %v", have, want)
	}
	return nil
}

func (w *world) expectFetched(object *v1.AddonCatalogue, status, reason string, words ...string) string {
	w.t.Helper()
	expect.HasCondition(w.t, w.client, object, expect.Is(v1.ConditionFetched, status, reason, words...))
	return meta.FindStatusCondition(object.Status.Conditions, v1.ConditionFetched).Message
}

// events are the reasons of the events on an object.
func (w *world) events(object client.Object) []string {
	w.t.Helper()
	var reasons []string
	for _, event := range expect.Events(w.t, w.client, object) {
		reasons = append(reasons, event.Reason)
	}
	slices.Sort(reasons)
	return reasons
}

func (w *world) resourceVersions(of map[string]*v1.AddonCatalogue) map[string]string {
	versions := map[string]string{}
	for name, child := range of {
		versions[name] = child.ResourceVersion
	}
	return versions
}
