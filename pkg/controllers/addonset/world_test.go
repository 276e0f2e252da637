package addonset_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/addonset"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/standins"
	kit "github.com/trellis-addons/trellis/test/world"
)

func TestMain(m *testing.M) {
	fleet.Main(m, fleet.ClusterOptions{Name: "seed"})
}

// key is the key of the distributor's marks.
const key = "01234567890123456789012345678901"

// world is a seed with Clusters, a catalogue and a copy of a set, for one test. The stand-in of the installation
// controller follows a script.
type world struct {
	t         testing.TB
	catalogue string
	seed      client.WithWatch
	clusters  *standins.Clusters
	names     []string
	player    *standins.Player
	marks     *mergedcatalogue.Marks
	recorder  *events.FakeRecorder
	// controller is the one that was started last, manager is its manager.
	controller *addonset.Reconciler
	manager    *kit.Manager
	// writes counts the controller's writes of AddonInstallations, statuses those of AddonSets' status.
	writes, statuses atomic.Int64
	// beside are Clusters that are not KKP's; nil: there are none.
	beside *kit.Beside
	// landing is the namespace that later catalogues name.
	landing string
	// clock of the controller that is started next; nil: that of the machine.
	clock clock.PassiveClock
}

var worlds int

// newWorld has so many Clusters, the first of them canaries in ring 0.
func newWorld(t testing.TB, count, canaries int, script ...standins.Rule) *world {
	t.Helper()
	worlds++
	config := fleet.Shared().Cluster("seed").Config
	w := &world{
		t: t, catalogue: fmt.Sprintf("catalogue-%d", worlds), recorder: events.NewFakeRecorder(1000),
		seed: kit.Client(t, config), clusters: standins.NewClusters(t, config), marks: mergedcatalogue.New(logr.Discard()),
	}
	expect.Create(t, w.seed, kit.Namespace(w.catalogue))
	first := worlds * 1000
	w.names = w.clusters.Make(t, standins.Shape{First: first, Count: count, Labels: func(number int) map[string]string {
		ring := "1"
		if number-first < canaries {
			ring = "0"
		}
		return map[string]string{"world": w.catalogue, "ring": ring, "number": fmt.Sprint(number - first)}
	}})
	t.Cleanup(w.clear)
	w.player = standins.Play(t, config, script...)
	return w
}

// clear removes all finalizers: a test may end while the controllers are stopped.
func (w *world) clear() {
	ctx := context.Background()
	free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	var sets v1.AddonSetList
	var left v1.AddonInstallationList
	if err := w.seed.List(ctx, &sets, client.InNamespace(w.catalogue)); err != nil {
		w.t.Error(err)
	}
	if err := w.seed.List(ctx, &left); err != nil {
		w.t.Error(err)
	}
	var all []client.Object
	for i := range sets.Items {
		all = append(all, &sets.Items[i])
	}
	for i := range left.Items {
		all = append(all, &left.Items[i])
	}
	for _, name := range w.names {
		all = append(all, &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, object := range all {
		if err := w.seed.Patch(ctx, object, free); client.IgnoreNotFound(err) != nil {
			w.t.Error(err)
		}
		if err := w.seed.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			w.t.Error(err)
		}
	}
}

// start runs the controller until the returned function is called, at the latest at the end of the test.
func (w *world) start(wraps ...func(http.RoundTripper) http.RoundTripper) (stop func()) {
	w.t.Helper()
	config := rest.CopyConfig(fleet.Shared().Cluster("seed").Config)
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{next, w} })
	for _, wrap := range wraps {
		config.Wrap(wrap)
	}
	made := kit.Seed(w.t, config, w.catalogue)
	dependencies := wiring.AddonSet(made.Seed, w.marks, addonset.Options{
		CatalogueNamespace: w.catalogue, StatusInterval: 100 * time.Millisecond,
	})
	dependencies.Recorder = w.recorder
	if w.beside != nil {
		all := w.beside.Over(made.Clusters, made.Clusters)
		dependencies.Finder, dependencies.Live = all, all
	}
	if w.clock != nil {
		dependencies.Clock = w.clock
	}
	w.controller, w.manager = addonset.New(dependencies), made
	made.SetUp(w.controller)
	made.Run()
	return made.Stop
}

type counted struct {
	next  http.RoundTripper
	world *world
}

// RoundTrip implements http.RoundTripper.
func (c counted) RoundTrip(request *http.Request) (*http.Response, error) {
	path := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	if request.Method != http.MethodGet && len(path) > 5 {
		switch path[5] {
		case "addoninstallations":
			c.world.writes.Add(1)
		case "addonsets":
			c.world.statuses.Add(1)
		}
	}
	return c.next.RoundTrip(request)
}

// offers writes the merged catalogue of an add-on as the distributor does, with these versions; "1.0.0 <1.37" has a constraint.
func (w *world) offers(addon string, versions ...string) {
	w.t.Helper()
	merged := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.catalogue, Name: addon, Labels: map[string]string{v1.LabelRole: v1.RoleMerged},
	}}
	about := v1.Addon{Name: v1.AddonName(addon), TargetNamespace: w.landing, CreateNamespace: w.landing != ""}
	for _, text := range versions {
		version, constraint, isConstrained := strings.Cut(text, " ")
		one := v1.AddonVersion{
			Version: version, Template: &v1.Template{Method: v1.MethodGoTemplate},
			Source: &v1.Source{Docker: &v1.ImageSource{Image: "registry.example/" + addon + ":" + version}},
		}
		if isConstrained {
			one.Constraints = &v1.Constraints{K8sVersion: v1.VersionRange(constraint)}
		}
		about.Versions = append(about.Versions, one)
	}
	merged.Spec = v1.AddonCatalogueSpec{Type: v1.CatalogueCustom, Addons: []v1.Addon{about}}
	merged.Annotations = map[string]string{v1.AnnotationKKPVersion: "2.31.0", v1.AnnotationDigest: strings.Join(versions, ",")}
	w.put(merged)
	content, err := catalogue.ContentDigest(merged) // with the defaults of the API server
	if err != nil {
		w.t.Fatal(err)
	}
	merged.Annotations[v1.AnnotationMark] = catalogue.Mark([]byte(key), merged, content)
	w.put(merged)
}

// put creates an object, or replaces it.
func (w *world) put(object client.Object) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		before := object.DeepCopyObject().(client.Object)
		err := w.seed.Get(w.t.Context(), client.ObjectKeyFromObject(object), before)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err != nil {
			object.SetResourceVersion("")
			return w.seed.Create(w.t.Context(), object)
		}
		object.SetResourceVersion(before.GetResourceVersion())
		object.SetFinalizers(before.GetFinalizers())
		return w.seed.Update(w.t.Context(), object)
	})
}

// set is a copy that installs add-on web in the world's clusters, canaries first, one at a time.
func (w *world) set(name string, change ...func(*v1.AddonSet)) *v1.AddonSet {
	made := &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.catalogue, Name: name, Labels: map[string]string{v1.LabelRole: v1.RoleCopy},
		Annotations: map[string]string{v1.AnnotationSeed: "seed"},
	}}
	one := intstr.FromInt32(1)
	made.Spec = v1.AddonSetSpec{
		Type: v1.AddonSetCustom, ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"world": w.catalogue}},
		Addons: []v1.AddonSetItem{{
			Name: "web", AddonRef: v1.AddonReference{Name: "web", Version: "1.x"}, TargetNamespace: "web",
			ReconcileStrategy: v1.ReconcileContinuous,
		}},
		Rollout: &v1.Rollout{
			Pace: v1.Pace{
				MaxConcurrency: &one, Soak: &metav1.Duration{Duration: time.Second},
				ProgressDeadline: &metav1.Duration{Duration: time.Minute},
			},
			Groups: []v1.RolloutGroup{{
				Name: "canary", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"ring": "0"}}, Start: v1.StartAutomatic,
			}},
		},
	}
	for _, change := range change {
		change(made)
	}
	return made
}

// atOnce lets all clusters move concurrently.
func atOnce(of *v1.AddonSet) {
	all := intstr.FromString("100%")
	of.Spec.Rollout.Groups, of.Spec.Rollout.MaxConcurrency = nil, &all
}

// write writes the copy as the distributor does.
func (w *world) write(of *v1.AddonSet) *v1.AddonSet {
	w.t.Helper()
	digest, err := catalogue.SetDigest(&of.Spec)
	if err != nil {
		w.t.Fatal(err)
	}
	of.Annotations[v1.AnnotationDigest] = digest
	of.Annotations[v1.AnnotationMark] = catalogue.SetMark([]byte(key), of, digest)
	w.put(of)
	return of
}

// open allows so many groups of the present revision to move, as the master does.
func (w *world) open(of *v1.AddonSet, groups int) {
	w.t.Helper()
	found := expect.Object(w.t, w.seed, copyOf(of), func(found *v1.AddonSet) error {
		if found.Status.Revision == "" || found.Status.ObservedGeneration != found.Generation {
			return fmt.Errorf("it has no revision yet")
		}
		return nil
	})
	of.Annotations[v1.AnnotationGate] = rollout.GateValue(found.Status.Revision, groups)
	w.write(of)
}

func copyOf(of *v1.AddonSet) *v1.AddonSet {
	return &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}}
}

// readyBy is the status of Ready for a reason.
func readyBy(reason string) string {
	if reason == v1.ReasonComplete || reason == v1.ReasonNoClusterSelected {
		return "True"
	}
	return "False"
}

// says waits until a copy has that reason for Ready, and the requested counts.
func (w *world) says(of *v1.AddonSet, reason string, holds ...func(v1.ClusterCounts) bool) *v1.AddonSet {
	w.t.Helper()
	return expect.Object(w.t, w.seed, copyOf(of), func(found *v1.AddonSet) error {
		if err := expect.Condition(found, v1.ConditionReady, readyBy(reason), reason); err != nil {
			return err
		}
		for _, hold := range holds {
			if found.Status.Counts == nil || !hold(*found.Status.Counts) {
				return fmt.Errorf("its counts are %+v", found.Status.Counts)
			}
		}
		return nil
	})
}

func current(number int32) func(v1.ClusterCounts) bool {
	return func(counts v1.ClusterCounts) bool { return counts.Current == number }
}

// installed are the world's installations of a name, by cluster.
func (w *world) installed(name string) map[string]*v1.AddonInstallation {
	w.t.Helper()
	var list v1.AddonInstallationList
	expect.List(w.t, w.seed, &list)
	found := map[string]*v1.AddonInstallation{}
	for i := range list.Items {
		of := standins.ClusterOf(list.Items[i].Namespace)
		for _, mine := range w.names {
			if of == mine && list.Items[i].Name == name {
				found[of] = &list.Items[i]
			}
		}
	}
	return found
}

// at are the clusters whose installation requests a version, in order.
func (w *world) at(version string) []string {
	w.t.Helper()
	var names []string
	found := w.installed("web")
	for _, name := range w.names {
		if one := found[name]; one != nil && one.Spec.AddonRef.Version == version {
			names = append(names, name)
		}
	}
	return names
}

// moving are the clusters that were written and have not been Ready for a second since.
func (w *world) moving() []string {
	w.t.Helper()
	var names []string
	for name, one := range w.installed("web") {
		state := installation.StateOf(one, installation.Pace{Soak: 900 * time.Millisecond, Deadline: time.Minute}, time.Now())
		if state.Phase != installation.Settled {
			names = append(names, name)
		}
	}
	return names
}

// steady fails the test unless a condition holds before and after all sets and clusters are reconciled again.
func (w *world) steady(holds func() error) {
	w.t.Helper()
	w.manager.Stays(holds, everything...)
}

// everything are both controllers, twice: a decision of one allows writes of the other.
var everything = []string{"addonset", "addonset-clusters", "addonset", "addonset-clusters"}

// quiet fails the test when reconciliations write installations.
func (w *world) quiet() {
	w.t.Helper()
	w.quietWhile(everything...)
}

// quietWhile fails the test when these controllers write installations while they reconcile all objects again.
func (w *world) quietWhile(controllers ...string) {
	w.t.Helper()
	before := w.writes.Load()
	w.manager.Stays(func() error {
		if written := w.writes.Load() - before; written != 0 {
			return fmt.Errorf("%d writes of installations", written)
		}
		return nil
	}, controllers...)
}

// reported waits until the reasons of all events are these. An event is reported after the status that it is about.
func (w *world) reported(want string) {
	w.t.Helper()
	expect.Recorded(w.t, w.recorder.Events, want)
}

// useKey makes marks count, as on a seed with a master.
func (w *world) useKey() {
	w.t.Helper()
	kit.UseKey(w.t, w.seed, w.marks, w.catalogue, []byte(key))
}
