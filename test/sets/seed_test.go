package sets_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/base/fairqueue"
	"github.com/trellis-addons/trellis/pkg/controllers/addon"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/pkg/controllers/addonset"
	"github.com/trellis-addons/trellis/pkg/controllers/coreaddon"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/gotemplate"
	"github.com/trellis-addons/trellis/pkg/render/kept"
	"github.com/trellis-addons/trellis/pkg/values/images"
	"github.com/trellis-addons/trellis/test/disk"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	kit "github.com/trellis-addons/trellis/test/world"
)

// seed is one of a world, with the real controllers of a seed.
type seed struct {
	world        *world
	name, server string
	client       client.Client
	// wrap changes what the controllers that are started next send and are answered; nil changes nothing.
	wrap func(http.RoundTripper) http.RoundTripper
	// stop ends the controllers, where a test does that.
	stop func()
	// clock is that of the controllers that are started next; nil is that of the machine.
	clock clock.PassiveClock
	// sets is the manager that runs the controllers of sets; nil: none runs.
	sets *kit.Manager
	// stale is the resource whose lists are behind, and of which no event comes; "": none is.
	stale string
	// nudges are how often copies were annotated, so that they are reconciled.
	nudges int
}

// addSeed has the master list a seed.
func (w *world) addSeed(name, server string, isMaster bool) {
	w.t.Helper()
	one := &seed{world: w, name: name, server: server, client: clientOf(w.t, server)}
	if !isMaster {
		expect.Create(w.t, one.client, kit.Namespace(w.platform))
	}
	expect.Create(w.t, one.client, kit.Namespace(w.catalogue))
	expect.Create(w.t, w.master, given.SeedSecret(w.platform, name, fleet.Shared().Cluster(server).Kubeconfig))
	w.seeds[name] = one
	one.list()
}

// list has the master know the seed.
func (s *seed) list() {
	s.world.t.Helper()
	expect.Create(s.world.t, s.world.master, s.listed())
}

// unlist takes the seed off the master's list.
func (s *seed) unlist() {
	s.world.t.Helper()
	expect.Delete(s.world.t, s.world.master, s.listed())
}

func (s *seed) listed() *kkpv1.Seed {
	return given.ListedSeed(s.world.platform, s.name)
}

// cluster makes a Cluster that is up, with a kubeconfig where it has an API server.
func (s *seed) cluster(one placed) *kkpv1.Cluster {
	s.world.t.Helper()
	var kubeconfig []byte
	if one.server != "" {
		kubeconfig = fleet.Shared().Cluster(one.server).Kubeconfig
	}
	name := fmt.Sprintf("%s-%d", one.cluster, worlds)
	return kit.UserCluster(s.world.t, s.client, name, kubeconfig, func(made *kkpv1.Cluster) {
		made.Labels = map[string]string{"ring": one.ring}
		made.Spec.Cloud.ProviderName, made.Spec.DisableCSIDriver = "bringyourown", true
	})
}

// manager of the seed, with marks of its own: a process that starts knows nothing.
func (s *seed) manager() (*kit.Manager, *mergedcatalogue.Marks) {
	s.world.t.Helper()
	config := rest.CopyConfig(fleet.Shared().Cluster(s.server).Config)
	if s.wrap != nil {
		config.Wrap(s.wrap)
	}
	marks := mergedcatalogue.New(logr.Discard())
	if s.world.keyed {
		expect.NoError(s.world.t, marks.Read(s.world.t.Context(), s.client, s.world.platform))
	}
	return kit.Seed(s.world.t, config, s.world.catalogue), marks
}

// run runs all controllers of the seed until the returned function is called.
func (s *seed) run() (stop func()) {
	s.world.t.Helper()
	sets, installations := s.runSets(), s.runInstallations()
	return func() {
		sets()
		installations()
	}
}

// runSets runs all controllers of the seed but that of installations until the returned function is called.
func (s *seed) runSets() (stop func()) {
	s.world.t.Helper()
	made, marks := s.manager()
	platform, catalogue := s.world.platform, s.world.catalogue
	core := wiring.CoreAddon(made.Seed, marks, coreaddon.Options{Namespace: platform, CatalogueNamespace: catalogue})
	sets := wiring.AddonSet(made.Seed, marks, addonset.Options{CatalogueNamespace: catalogue, StatusInterval: 100 * time.Millisecond})
	core.Clock, sets.Clock = s.clock, s.clock
	made.SetUp(
		addon.New(wiring.Addon(made.Seed, marks, addon.Options{CatalogueNamespace: catalogue})), coreaddon.New(core), addonset.New(sets),
	)
	made.Run()
	s.sets = made
	return func() {
		s.sets = nil
		made.Stop()
	}
}

// lookAgain has the controller of sets reconcile each copy of a set, and waits until it has.
func (s *seed) lookAgain() {
	t := s.world.t
	t.Helper()
	if s.sets == nil {
		return
	}
	if s.stale != "" {
		s.looked()
		return
	}
	var copies v1.AddonSetList
	expect.List(t, s.client, &copies, client.InNamespace(s.world.catalogue))
	s.nudges++
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"test/nudge":"%d"}}}`, s.nudges))
	for i := range copies.Items {
		name := copies.Items[i].Name
		before := s.counted(s.sets.Began, name)
		expect.Patch(t, s.client, &copies.Items[i], patch)
		expect.Eventually(t, expect.Patience, func() error {
			if ended := s.counted(s.sets.Ended, name); ended <= before {
				return fmt.Errorf("set %s was not reconciled after its annotation: %d times before, %d times by now", name, before, ended)
			}
			return nil
		})
	}
}

// counted is a count of reconciliations of a set: events of the copy enqueue it with its namespace, and clusters without.
func (s *seed) counted(count func(controller, namespace, name string) int, set string) int {
	return count("addonset", "", set) + count("addonset", s.world.catalogue, set)
}

// looked waits until the controllers of sets and of core add-ons have reconciled all that their lists bring.
func (s *seed) looked() {
	t := s.world.t
	t.Helper()
	if !s.sets.GetCache().WaitForCacheSync(t.Context()) {
		t.Fatal("the caches were never filled")
	}
	count := len(s.world.clusters)
	least := map[string]int{"addonset": 1, "addonset-clusters": count, "coreaddon": count}
	switch s.stale {
	case "addonsets":
		delete(least, "addonset")
	case "clusters":
		delete(least, "addonset-clusters")
		delete(least, "coreaddon")
	}
	for controller, want := range least {
		expect.Eventually(t, expect.Patience, func() error {
			if have := s.sets.All(controller); have < want {
				return fmt.Errorf("%s has reconciled %d times, want %d", controller, have, want)
			}
			return nil
		})
	}
}

// runInstallations runs the controller of installations until the returned function is called.
func (s *seed) runInstallations() (stop func()) {
	t := s.world.t
	t.Helper()
	made, marks := s.manager()
	served := kinds()
	content, err := store.New(store.Options{Folder: disk.TempDir(t), Kinds: served, Interval: time.Second})
	expect.NoError(t, err)
	key := []byte("key")
	dependencies, err := wiring.AddonInstallation(made.Context(), made.Seed, marks, wiring.InstallationParts{
		Namespace: s.world.platform, SourceKinds: served, Store: content,
		Renders: kept.New(kept.Options{
			Methods: map[string]render.Renderer{string(v1.MethodGoTemplate): gotemplate.New()}, Values: gotemplate.New(),
		}),
		Records: wiring.Records(made, key), InputsKey: key, Images: images.Rules{},
		Options: addoninstallation.Options{
			CatalogueNamespace: s.world.catalogue, DriftInterval: time.Second, OrderTimeout: 10 * time.Minute,
			Limits: fairqueue.Limits{Workers: 4},
		},
	})
	expect.NoError(t, err)
	made.SetUp(addoninstallation.New(dependencies))
	made.Run()
	return made.Stop
}
