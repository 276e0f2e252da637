package coreaddon_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/controllers/coreaddon"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	kit "github.com/trellis-addons/trellis/test/world"
)

func TestMain(m *testing.M) {
	fleet.Main(m, fleet.ClusterOptions{Name: "seed"})
}

// world is a seed with a platform namespace and a catalogue namespace for one test. The test takes the role of the
// other controllers.
type world struct {
	t                   testing.TB
	platform, catalogue string
	seed                client.WithWatch
	recorder            *events.FakeRecorder
	// writes counts the controller's writes of AddonInstallations.
	writes *writes
	made   []*kkpv1.Cluster
	// controller is the one that was started last, manager is its manager.
	controller *coreaddon.Reconciler
	manager    *kit.Manager
	// marks distinguish merged catalogues from others.
	marks *mergedcatalogue.Marks
	// key is the key of the distributor's marks; nil: there is none.
	key []byte
	// beside are Clusters that are not KKP's; nil: there are none.
	beside *kit.Beside
	// looks counts how often the controller reads one cluster, and all.
	looks looks
}

// looks counts the calls of a Finder.
type looks struct{ one, all atomic.Int64 }

type lookedAt struct {
	cluster.Finder
	looks *looks
}

// Find implements cluster.Finder.
func (l lookedAt) Find(ctx context.Context, ref target.Ref) (target.Description, error) {
	l.looks.one.Add(1)
	return l.Finder.Find(ctx, ref)
}

// List implements cluster.Finder.
func (l lookedAt) List(ctx context.Context) ([]target.Description, error) {
	l.looks.all.Add(1)
	return l.Finder.List(ctx)
}

var worlds int

func newWorld(t testing.TB) *world {
	t.Helper()
	worlds++
	w := &world{
		t: t, recorder: events.NewFakeRecorder(1000), writes: &writes{},
		platform: fmt.Sprintf("platform-%d", worlds), catalogue: fmt.Sprintf("catalogue-%d", worlds),
		marks: mergedcatalogue.New(logr.Discard()),
	}
	w.seed = kit.Client(t, fleet.Shared().Cluster("seed").Config)
	expect.Create(w.t, w.seed, kit.Namespace(w.platform), kit.Namespace(w.catalogue))
	t.Cleanup(w.clear)
	return w
}

// clear removes all finalizers: a test may end while the controller is stopped.
func (w *world) clear() {
	ctx := context.Background()
	if err := w.seed.DeleteAllOf(ctx, &kkpv1.Cluster{}); err != nil {
		w.t.Error(err)
	}
	var left v1.AddonInstallationList
	if err := w.seed.List(ctx, &left); err != nil {
		w.t.Error(err)
	}
	for i := range left.Items {
		free := []byte(`{"metadata":{"finalizers":null}}`)
		if err := w.seed.Patch(ctx, &left.Items[i], client.RawPatch("application/merge-patch+json", free)); client.IgnoreNotFound(err) != nil {
			w.t.Error(err)
		}
		if err := w.seed.Delete(ctx, &left.Items[i]); client.IgnoreNotFound(err) != nil {
			w.t.Error(err)
		}
	}
}

// start runs the controller until the returned function is called, at the latest at the end of the test.
func (w *world) start(wraps ...func(http.RoundTripper) http.RoundTripper) (stop func()) {
	w.t.Helper()
	config := rest.CopyConfig(fleet.Shared().Cluster("seed").Config)
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return w.writes.count(next) })
	for _, wrap := range wraps {
		config.Wrap(wrap)
	}
	made := kit.Seed(w.t, config, w.catalogue)
	dependencies := wiring.CoreAddon(made.Seed, w.marks, coreaddon.Options{
		Namespace: w.platform, CatalogueNamespace: w.catalogue, StatusInterval: 100 * time.Millisecond,
	})
	dependencies.Recorder, dependencies.Finder = w.recorder, lookedAt{dependencies.Finder, &w.looks}
	if w.beside != nil {
		all := w.beside.Over(made.Clusters, made.Clusters)
		dependencies.Finder, dependencies.Live = all, all
	}
	w.controller, w.manager = coreaddon.New(dependencies), made
	made.SetUp(w.controller)
	made.Run()
	return made.Stop
}

// steady fails the test unless a condition holds before and after the Core set and all clusters are reconciled again,
// twice: a decision of one allows writes of the other.
func (w *world) steady(holds func() error) {
	w.t.Helper()
	w.manager.Stays(holds, "coreaddon-set", "coreaddon", "coreaddon-set", "coreaddon")
}

// writes counts requests that write AddonInstallations themselves, not their status.
type writes struct {
	number atomic.Int64
	// answer, if set, is called for the answer to such a request.
	answer atomic.Pointer[func(*http.Request, http.RoundTripper) (*http.Response, error)]
}

type counted struct {
	next   http.RoundTripper
	writes *writes
}

func (w *writes) count(next http.RoundTripper) http.RoundTripper { return counted{next, w} }

// RoundTrip implements http.RoundTripper.
func (c counted) RoundTrip(request *http.Request) (*http.Response, error) {
	path := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	if request.Method != http.MethodGet && len(path) > 5 && path[5] == "addoninstallations" {
		c.writes.number.Add(1)
		if answer := c.writes.answer.Load(); answer != nil {
			return (*answer)(request, c.next)
		}
	}
	return c.next.RoundTrip(request)
}

// cluster creates a Cluster that has every field, with its namespace and an available catalogue.
func (w *world) cluster(name string) *kkpv1.Cluster {
	w.t.Helper()
	name = fmt.Sprintf("%s-%d", name, worlds)
	object := kit.UserCluster(w.t, w.seed, name, nil, func(made *kkpv1.Cluster) {
		made.Labels = map[string]string{"world": w.platform}
		made.Spec.Cloud.ProviderName, made.Spec.DisableCSIDriver = "bringyourown", true
		made.Spec.CNIPlugin = &kkpv1.CNIPlugin{Type: "none"}
		made.Spec.ClusterNetwork.ProxyMode, made.Spec.ClusterNetwork.KonnectivityEnabled = "iptables", new(true)
	})
	expect.Create(w.t, w.seed, availableOf(object))
	return object
}

func availableOf(of *kkpv1.Cluster) *v1.AddonCatalogue {
	return given.Available(client.ObjectKey{Namespace: of.Status.NamespaceName, Name: v1.AvailableCatalogue})
}

// merged creates a merged catalogue of one add-on.
func (w *world) merged(kind v1.CatalogueType, name string) *v1.AddonCatalogue {
	w.t.Helper()
	object := given.Merged(w.catalogue, kind, given.Addon(name, v1.AddonVersion{Version: "1.0.0"}))
	expect.Create(w.t, w.seed, object)
	return object
}

// listed writes the custom core list.
func (w *world) listed(text string) {
	w.t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: coreaddon.ListName}}
	expect.Put(w.t, w.seed, object, func(object *corev1.ConfigMap) { object.Data = map[string]string{coreaddon.ListKey: text} })
}

func metadataList() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1.GroupVersion.WithKind("AddonInstallationList"))
	return list
}

func installationOf(of *kkpv1.Cluster, name string) *v1.AddonInstallation {
	return &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: of.Status.NamespaceName, Name: name}}
}

// exists waits for a core installation as the controller creates it.
func (w *world) exists(of *kkpv1.Cluster, name string) *v1.AddonInstallation {
	w.t.Helper()
	return expect.Object(w.t, w.seed, installationOf(of, name), func(found *v1.AddonInstallation) error {
		if !found.Spec.CoreAddon || !hasProtection(found) || found.Labels[v1.LabelManagedBy] != v1.ManagedByCoreAddons {
			return fmt.Errorf("it is not as it is made: %+v", found)
		}
		return nil
	})
}

func hasProtection(found *v1.AddonInstallation) bool {
	return slices.Contains(found.Finalizers, v1.FinalizerCoreProtection)
}

// said writes a condition as the installation controller does.
func (w *world) said(installation *v1.AddonInstallation, kind string, state metav1.ConditionStatus, reason string) {
	w.t.Helper()
	expect.ChangeStatus(w.t, w.seed, installation, func(installation *v1.AddonInstallation) {
		conditions.Set(&installation.Status.Conditions, metav1.Condition{
			Type: kind, Status: state, Reason: reason, Message: "says " + reason, ObservedGeneration: installation.Generation,
		})
	})
}

// reports waits for status.core and AddonsReady of a cluster, as texts.
func (w *world) reports(of *kkpv1.Cluster, counts, condition string) *v1.AddonCatalogue {
	w.t.Helper()
	return expect.Object(w.t, w.seed, availableOf(of), func(found *v1.AddonCatalogue) error {
		core := found.Status.Core
		if core == nil {
			return fmt.Errorf("it has no status.core")
		}
		if got := fmt.Sprintf("%d total, %d ready, %d failing, %d missing", core.Total, core.Ready, core.Failing, core.Missing); got != counts {
			return fmt.Errorf("status.core is %s, want %s", got, counts)
		}
		kind, reason, _ := strings.Cut(condition, " ")
		return expect.Condition(found, v1.ConditionAddonsReady, kind, reason)
	})
}

// lists waits for the add-ons of status.core of a cluster, as texts.
func (w *world) lists(of *kkpv1.Cluster, want ...string) {
	w.t.Helper()
	expect.Object(w.t, w.seed, availableOf(of), func(found *v1.AddonCatalogue) error {
		var got []string
		if found.Status.Core != nil {
			for _, one := range found.Status.Core.Addons {
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s (%s) %s %s %s", one.Name, one.Addon, one.Version, one.State, one.Reason)))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("status.core.addons (-want +got):\n%s", diff)
		}
		return nil
	})
}

// event waits for an event that contains the words.
func (w *world) event(words ...string) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		select {
		case reported := <-w.recorder.Events:
			for _, word := range words {
				if !strings.Contains(reported, word) {
					return fmt.Errorf("the event is %q", reported)
				}
			}
			return nil
		default:
			return fmt.Errorf("no event with %q", words)
		}
	})
}

// reported waits until the reasons of all events are these. An event is reported after the status that it is about.
func (w *world) reported(want string) {
	w.t.Helper()
	expect.Recorded(w.t, w.recorder.Events, want)
}
