package clusterupgrade_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/controllers/addonset"
	"github.com/trellis-addons/trellis/pkg/controllers/clusterupgrade"
	"github.com/trellis-addons/trellis/pkg/controllers/coreaddon"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/fleet/upgrade"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	kit "github.com/trellis-addons/trellis/test/world"
)

const (
	oldest, before, after = "v1.35.4", "v1.36.3", "v1.37.1"
	// pendingHooks is an annotation of Cluster API's own.
	pendingHooks = "runtime.cluster.x-k8s.io/pending-hooks"
)

func TestMain(m *testing.M) {
	fleet.Main(m, fleet.ClusterOptions{Name: "management", Controllers: true}, fleet.ClusterOptions{Name: "user"},
		fleet.ClusterOptions{Name: "mortal"})
}

// setting of a world; what is empty is as a rule.
type setting struct {
	// class are the versions that its ClusterClass lists, from is the one that the Cluster has at first.
	class []string
	from  string
	// server is the user cluster.
	server string
	// rolling is told of each step of the control plane, and holds it up.
	rolling func(context.Context, clusterapi.Step)
	// offered are pairs of a version of the add-on and what it fits.
	offered []string
	timeout time.Duration
}

// world is one Cluster of the management cluster, with an add-on that has a slot, and controllers that are about no other.
type world struct {
	t         *testing.T
	client    client.WithWatch
	name      string
	key       types.NamespacedName
	catalogue string
	rules     upgrade.Rules
	setting   setting
	// running is the manager of our controllers; nil: none runs.
	running *kit.Manager
	// written and refused count what our controllers write of the Cluster.
	written, refused atomic.Int32
}

var (
	worlds atomic.Int32
	// byName are the worlds, by the namespaces of their Clusters.
	byName sync.Map
)

// provider of all control planes, whose versions turn in status only.
var provider = clusterapi.Provider{
	StatusOnly: true,
	ServerOf: func(of types.NamespacedName) *fleet.Cluster {
		if w, isKnown := byName.Load(of.Namespace); isKnown {
			return fleet.Shared().Cluster(w.(*world).setting.server)
		}
		return nil
	},
	Rolling: func(ctx context.Context, step clusterapi.Step) {
		if w, isKnown := byName.Load(step.Cluster.Namespace); isKnown && w.(*world).setting.rolling != nil {
			w.(*world).setting.rolling(ctx, step)
		}
	},
}

// clusterAPI runs, with its provider, from the first test that needs it until the last one ends.
var clusterAPI = sync.OnceValue(func() error {
	management := fleet.Shared().Cluster("management")
	if _, err := clusterapi.Start(context.Background(), fleet.Shared(), management, clusterapi.Options{}); err != nil {
		return err
	}
	_, err := clusterapi.StartProvider(management, provider)
	return err
})

// counting counts what is written of Clusters.
type counting struct {
	*world
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c counting) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	isCluster := strings.HasPrefix(request.URL.Path, "/apis/"+capiv1.Group) && strings.HasSuffix(request.URL.Path, "/clusters/"+c.key.Name)
	if err != nil || !isCluster || request.Method == http.MethodGet {
		return response, err
	}
	if response.StatusCode == http.StatusOK {
		c.written.Add(1)
	} else {
		c.refused.Add(1)
	}
	return response, nil
}

// newWorld has a Cluster of a Cluster API that all tests share, each by a worker of its own. Its add-on is played: nothing is installed.
func newWorld(t *testing.T, of setting) *world {
	t.Helper()
	t.Parallel()
	expect.NoError(t, clusterAPI())
	return makeWorld(t, of)
}

// makeWorld has a Cluster whose control plane and workers are at its version.
func makeWorld(t *testing.T, of setting) *world {
	t.Helper()
	name := fmt.Sprintf("held-%d", worlds.Add(1))
	of.from, of.server = cmp.Or(of.from, before), cmp.Or(of.server, "user")
	if of.offered == nil {
		of.offered = []string{"1.0.0", "< 1.37", "1.1.0", ">= 1.36, < 1.38", "2.0.0", "~1.37"}
	}
	w := &world{
		t: t, client: kit.Client(t, fleet.Shared().Cluster("management").Config), name: name, setting: of,
		key: types.NamespacedName{Namespace: name, Name: "one"}, catalogue: "catalogue-" + name,
		rules: upgrade.Rules{Hold: true, Timeout: cmp.Or(of.timeout, time.Hour)},
	}
	byName.Store(name, w)
	expect.Create(t, w.client, kit.Namespace(name), kit.Namespace(w.catalogue), w.merged("cni", v1.SlotCNI, of.offered...))
	expect.NoError(t, (clusterapi.Class{Namespace: name, Versions: of.class}).Create(t.Context(), w.client))
	made := clusterapi.Cluster{
		Namespace: name, Name: "one", Version: of.from, Deployments: []string{"a", "b"}, Pools: []string{"p"},
		Labels: map[string]string{kkpv1.LabelWorkerName: name},
	}.Object()
	expect.Create(t, w.client, made)
	found := expect.Object(t, w.client, w.object(), func(cluster *unstructured.Unstructured) error {
		// With its last annotation Cluster API takes all off that came meanwhile: ours is put back then, unless an upgrade is pending.
		if pending := cluster.GetAnnotations()[pendingHooks]; pending != "" {
			return fmt.Errorf("hooks are pending: %s", pending)
		}
		return expect.Condition(cluster, "TopologyReconciled", "True", "")
	})
	w.available(found)
	return w
}

// end deletes the Cluster, while Cluster API and the provider run.
func (w *world) end() {
	w.t.Helper()
	if err := w.client.Delete(w.t.Context(), w.object()); err != nil {
		w.t.Error(err)
	}
	expect.Gone(w.t, w.client, w.object())
}

func (w *world) object() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(clusterapi.ClusterKind)
	object.SetNamespace(w.key.Namespace)
	object.SetName(w.key.Name)
	return object
}

// merged is the merged catalogue of an add-on, with pairs of a version and what it fits.
func (w *world) merged(addon string, slot v1.Slot, pairs ...string) *v1.AddonCatalogue {
	w.t.Helper()
	origins, versions := map[string]catalogue.Origin{}, []v1.AddonVersion(nil)
	for pair := range slices.Chunk(pairs, 2) {
		origins[pair[0]] = catalogue.Origin{Digest: "sha256:" + pair[0], Content: "sha256:" + strings.ReplaceAll(pair[0], ".", "")}
		versions = append(versions, v1.AddonVersion{
			Version: pair[0], Constraints: &v1.Constraints{K8sVersion: v1.VersionRange(pair[1])},
			Template: &v1.Template{Method: v1.MethodGoTemplate},
			Source:   &v1.Source{Git: &v1.GitSource{Remote: v1.GitRemote("https://git.example.com/" + addon), Ref: &v1.GitRef{Tag: "v1"}}},
		})
	}
	offered := v1.Addon{Name: v1.AddonName(addon), Slot: slot, Versions: versions}
	return given.WithOrigins(given.Merged(w.catalogue, v1.CatalogueCustom, offered), origins)
}

// available makes what the addon controller would.
func (w *world) available(of *unstructured.Unstructured) {
	w.t.Helper()
	owner := metav1.OwnerReference{APIVersion: of.GetAPIVersion(), Kind: of.GetKind(), Name: of.GetName(), UID: of.GetUID()}
	expect.Create(w.t, w.client, given.Available(w.availableKey(), owner))
}

func (w *world) availableKey() client.ObjectKey {
	return cluster.AvailableOf(target.Ref{Kind: target.KindClusterAPI, Namespace: w.key.Namespace, Name: w.key.Name})
}

// start runs the controller until the returned function is called, at the latest at the end of the test.
func (w *world) start() (stop func()) {
	w.t.Helper()
	made := w.seed()
	none := func(context.Context, target.Description) (map[string]v1.AddonReference, *v1.AddonSet, error) {
		return nil, nil, nil
	}
	made.SetUp(clusterupgrade.New(w.dependencies(made, mergedcatalogue.New(logr.Discard()), none)))
	made.Run()
	w.running = made
	return func() {
		w.running = nil
		made.Stop()
	}
}

// startAll runs the controllers of sets and of core add-ons beside ours, as the program of a seed does.
func (w *world) startAll() {
	w.t.Helper()
	made := w.seed()
	marks := mergedcatalogue.New(logr.Discard())
	core := coreaddon.New(wiring.CoreAddon(made.Seed, marks, coreaddon.Options{
		Namespace: w.catalogue, CatalogueNamespace: w.catalogue, WorkerName: w.name, StatusInterval: time.Millisecond,
	}))
	upgrades := clusterupgrade.New(w.dependencies(made, marks, core.Listed))
	made.SetUp(core, upgrades, addonset.New(wiring.AddonSet(made.Seed, marks, addonset.Options{
		CatalogueNamespace: w.catalogue, WorkerName: w.name, StatusInterval: time.Millisecond,
	})))
	made.Run()
	w.running = made
}

func (w *world) seed() *kit.Manager {
	w.t.Helper()
	counted := rest.CopyConfig(fleet.Shared().Cluster("management").Config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{w, next} })
	return kit.SeedOf(w.t, counted, w.catalogue, cluster.Kinds{
		Served:        []schema.GroupKind{target.KindClusterAPI},
		ControlPlanes: []schema.GroupResource{{Group: clusterapi.ControlPlaneGroup, Resource: "fleetcontrolplanes"}},
	})
}

func (w *world) dependencies(made *kit.Manager, marks *mergedcatalogue.Marks, core clusterupgrade.CoreList) clusterupgrade.Dependencies {
	return wiring.ClusterUpgrade(made.Seed, marks, core, clusterupgrade.Options{
		CatalogueNamespace: w.catalogue, WorkerName: w.name, Rules: w.rules,
	})
}

// installed says what the installation of the add-on would: a version, made for a Kubernetes version.
func (w *world) installed(version, kubernetes string, ready metav1.ConditionStatus) {
	w.t.Helper()
	one := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.key.Namespace, Name: "one.cni", Labels: map[string]string{v1.LabelSet: "network"},
	}}
	one.Spec = v1.AddonInstallationSpec{ClusterName: "one", AddonRef: v1.AddonReference{Name: "cni"}, TargetNamespace: "kube-system"}
	expect.Ensure(w.t, w.client, one.DeepCopy())
	expect.ChangeStatus(w.t, w.client, one, func(one *v1.AddonInstallation) {
		one.Status.Version = version
		one.Status.LastApplied = &v1.AppliedState{Addon: "cni", Version: version, K8sVersion: kubernetes}
		reason := v1.ReasonProgressing
		if ready == metav1.ConditionUnknown {
			reason = v1.ReasonClusterUnreachable
		}
		meta.SetStatusCondition(&one.Status.Conditions, metav1.Condition{
			Type: v1.ConditionReady, Status: ready, Reason: reason, ObservedGeneration: one.Generation,
		})
	})
}

// waits has an upgrade begin that its add-on holds.
func (w *world) waits() {
	w.t.Helper()
	w.installed("1.0.0", "1.36.3", metav1.ConditionFalse)
	w.says("False", v1.ReasonNotUpgrading)
	w.ask(after)
	w.says("True", v1.ReasonBeforeControlPlane)
}

// waitsWithWorkers has an upgrade get as far as its add-on holds the workers.
func (w *world) waitsWithWorkers() {
	w.t.Helper()
	w.installed("1.1.0", "1.36.3", metav1.ConditionTrue)
	w.says("False", v1.ReasonNotUpgrading)
	w.ask(after)
	w.says("True", v1.ReasonBeforeWorkers)
}

// offers has the add-on in other versions: pairs of a version and what it fits.
func (w *world) offers(pairs ...string) {
	w.t.Helper()
	found, wanted := &v1.AddonCatalogue{}, w.merged("cni", v1.SlotCNI, pairs...)
	expect.Get(w.t, w.client, client.ObjectKeyFromObject(wanted), found)
	wanted.ResourceVersion = found.ResourceVersion
	expect.Update(w.t, w.client, wanted)
}

// expectGivenUp waits for the event that names who was not right.
func (w *world) expectGivenUp(who string) { w.expectEvent(v1.EventUpgradeNotHeld, who) }

// expectEvent waits for an event of the Cluster with a text.
func (w *world) expectEvent(reason, who string) {
	w.t.Helper()
	expect.Event(w.t, w.client, w.object(), reason, who)
}

// reportedOnce is an error where there are more events of a reason than one, or one that repeats itself.
func (w *world) reportedOnce(reason string) error {
	reported := 0
	for _, item := range expect.Events(w.t, w.client, w.object()) {
		if item.Reason != reason {
			continue
		}
		reported++
		if item.Series != nil {
			reported += int(item.Series.Count)
		}
	}
	if reported != 1 {
		return fmt.Errorf("%d events %s", reported, reason)
	}
	return nil
}

// ask for a version of Kubernetes, once the hook lasts: Cluster API may take it off with its own last annotation, and an upgrade that is
// pending already gets none.
func (w *world) ask(version string) {
	w.t.Helper()
	expect.Lasts(w.t, expect.Patience, steady, func() error {
		if _, isOn := w.read().GetAnnotations()[capiv1.AnnotationBeforeUpgrade]; !isOn {
			return errors.New("the hook is not on")
		}
		return nil
	})
	expect.Eventually(w.t, expect.Patience, func() error { // its webhook asks the user cluster first
		return clusterapi.SetVersion(w.t.Context(), w.client, w.key, version)
	})
}

// says waits for condition UpgradeHeld.
func (w *world) says(status, reason string) {
	w.t.Helper()
	expect.HasCondition(w.t, w.client, w.offer(), expect.Is(v1.ConditionUpgradeHeld, status, reason))
}

// reported waits for condition UpgradeHeld of that reason, with a message that has these words.
func (w *world) reported(reason string, words ...string) {
	w.t.Helper()
	expect.HasCondition(w.t, w.client, w.offer(), expect.Is(v1.ConditionUpgradeHeld, "True", reason, words...))
}

func (w *world) offer() *v1.AddonCatalogue {
	key := w.availableKey()
	return &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}

// at waits until Cluster API has brought control plane and workers to these versions.
func (w *world) at(controlPlane, workers string) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error { return w.isAt(controlPlane, workers) })
}

// stays shows that nothing moves: our controller, where it runs, and then Cluster API reconcile the Cluster again.
func (w *world) stays(controlPlane, workers string) {
	w.t.Helper()
	if w.running != nil {
		w.running.Settle("clusterupgrade")
	}
	clusterapi.Reconciled(w.t, w.client, w.key)
	expect.NoError(w.t, w.isAt(controlPlane, workers))
}

func (w *world) isAt(controlPlane, workers string) error {
	got, err := clusterapi.Versions(w.t.Context(), w.client, w.key)
	want := clusterapi.Spread{
		ControlPlane: controlPlane, Deployments: map[string]string{"a": workers, "b": workers}, Pools: map[string]string{"p": workers},
	}
	if err == nil && !reflect.DeepEqual(got, want) {
		return fmt.Errorf("versions are %+v, want %+v", got, want)
	}
	return err
}

// letWorkersGo takes the hold off all pools, as anybody may.
func (w *world) letWorkersGo() {
	w.t.Helper()
	err := clusterapi.Change(w.t.Context(), w.client, w.key, func(found *unstructured.Unstructured) error {
		for _, list := range []string{"machineDeployments", "machinePools"} {
			path := []string{"spec", "topology", "workers", list}
			pools, _, err := unstructured.NestedSlice(found.Object, path...)
			if err != nil {
				return err
			}
			for _, pool := range pools {
				unstructured.RemoveNestedField(pool.(map[string]any), "metadata", "annotations", capiv1.AnnotationHoldSequence)
			}
			if err := unstructured.SetNestedSlice(found.Object, pools, path...); err != nil {
				return err
			}
		}
		return nil
	})
	expect.NoError(w.t, err)
}

// release annotates the Cluster, and expects that nothing delays it any longer, long before the timeout of a stage.
func (w *world) release() {
	w.t.Helper()
	expect.NoError(w.t, clusterapi.Annotate(w.t.Context(), w.client, w.key, v1.AnnotationUpgradeHold, v1.UpgradeHoldOff))
	expect.Object(w.t, w.client, w.object(), w.isFree)
	w.says("False", v1.ReasonOverridden)
}

// read gives the Cluster.
func (w *world) read() *unstructured.Unstructured {
	w.t.Helper()
	object := w.object()
	expect.Get(w.t, w.client, w.key, object)
	return object
}

// isFree says whether a Cluster and its pools have none of our annotations.
func (w *world) isFree(found *unstructured.Unstructured) error {
	encoded, err := json.Marshal(found.Object)
	if err != nil {
		return err
	}
	for _, ours := range []string{capiv1.AnnotationBeforeUpgrade, capiv1.AnnotationHoldSequence} {
		if strings.Contains(string(encoded), ours) {
			return fmt.Errorf("it has %s", ours)
		}
	}
	return nil
}
