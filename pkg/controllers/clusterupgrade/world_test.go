package clusterupgrade_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/controllers/clusterupgrade"
	"github.com/trellis-addons/trellis/pkg/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/upgrade"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	kit "github.com/trellis-addons/trellis/test/world"
)

const (
	before, after = "v1.36.3", "v1.37.1"
	// pendingHooks is an annotation of Cluster API's own.
	pendingHooks = "runtime.cluster.x-k8s.io/pending-hooks"
)

func TestMain(m *testing.M) {
	fleet.Main(m, fleet.ClusterOptions{Name: "management", Controllers: true}, fleet.ClusterOptions{Name: "user"})
}

// world is a management cluster with Cluster API, and one Cluster with an add-on that has a slot.
type world struct {
	t         *testing.T
	client    client.WithWatch
	key       types.NamespacedName
	catalogue string
	rules     upgrade.Rules
	// written and refused count what our controllers write of the Cluster.
	written, refused atomic.Int32
}

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

var worlds int

// newWorld has a Cluster whose control plane and workers are at version before. Its add-on is played: nothing is installed.
func newWorld(t *testing.T, options clusterapi.Options, rolling ...func(context.Context, clusterapi.Step)) *world {
	t.Helper()
	worlds++
	name := fmt.Sprintf("held-%d", worlds)
	f := fleet.Shared()
	management := f.Cluster("management")
	clusterapi.ForTest(t, f, management, options)
	w := &world{
		t: t, client: kit.Client(t, management.Config), key: types.NamespacedName{Namespace: name, Name: "one"},
		catalogue: "catalogue-" + name, rules: upgrade.Rules{Hold: true, Timeout: time.Hour},
	}
	provider := clusterapi.Provider{Servers: []*fleet.Cluster{f.Cluster("user")}, StatusOnly: true}
	for _, provider.Rolling = range rolling {
	}
	clusterapi.Play(t, management, provider)
	kit.Create(t, w.client, kit.Namespace(name), kit.Namespace(w.catalogue))
	w.offer()
	if err := (clusterapi.Class{Namespace: name}).Create(t.Context(), w.client); err != nil {
		t.Fatal(err)
	}
	made := clusterapi.Cluster{Namespace: name, Name: "one", Version: before, Deployments: []string{"a", "b"}, Pools: []string{"p"}}.Object()
	if err := w.client.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
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

// offer has a merged catalogue whose add-on is a cluster's network: 1.0.0 fits before alone, 1.1.0 both versions, 2.0.0 after
// alone.
func (w *world) offer() {
	w.t.Helper()
	origins, err := json.Marshal(map[string]catalogue.Origin{"1.0.0": {Digest: "sha256:1"}, "1.1.0": {Digest: "sha256:2"}, "2.0.0": {Digest: "sha256:3"}})
	if err != nil {
		w.t.Fatal(err)
	}
	version := func(name, fits string) v1.AddonVersion {
		return v1.AddonVersion{
			Version: name, Constraints: &v1.Constraints{K8sVersion: v1.VersionRange(fits)},
			Template: &v1.Template{Method: v1.MethodGoTemplate},
			Source:   &v1.Source{Git: &v1.GitSource{Remote: "https://git.example.com/cni", Ref: &v1.GitRef{Tag: "v1"}}},
		}
	}
	kit.Create(w.t, w.client, &v1.AddonCatalogue{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.catalogue, Name: "cni", Labels: map[string]string{v1.LabelRole: v1.RoleMerged},
			Annotations: map[string]string{v1.AnnotationVersions: string(origins)},
		},
		Spec: v1.AddonCatalogueSpec{Type: v1.CatalogueCustom, Addons: []v1.Addon{{
			Name: "cni", Slot: v1.SlotCNI, Versions: []v1.AddonVersion{version("1.0.0", "< 1.37"), version("1.1.0", ">= 1.36, < 1.38"), version("2.0.0", "~1.37")},
		}}},
	})
}

// available makes what the addon controller would.
func (w *world) available(of *unstructured.Unstructured) {
	w.t.Helper()
	key := w.availableKey()
	kit.Create(w.t, w.client, &v1.AddonCatalogue{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{v1.LabelRole: v1.RoleAvailable},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: of.GetAPIVersion(), Kind: of.GetKind(), Name: of.GetName(), UID: of.GetUID(),
			}},
		},
		Spec: v1.AddonCatalogueSpec{Type: v1.CatalogueCustom},
	})
}

func (w *world) availableKey() client.ObjectKey {
	return cluster.AvailableOf(target.Ref{Kind: target.KindClusterAPI, Namespace: w.key.Namespace, Name: w.key.Name})
}

// start runs the controller until the returned function is called, at the latest at the end of the test.
func (w *world) start() (stop func()) {
	w.t.Helper()
	counted := rest.CopyConfig(fleet.Shared().Cluster("management").Config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{w, next} })
	made := kit.SeedOf(w.t, counted, w.catalogue, cluster.Kinds{
		Served:        []schema.GroupKind{target.KindClusterAPI},
		ControlPlanes: []schema.GroupResource{{Group: clusterapi.ControlPlaneGroup, Resource: "fleetcontrolplanes"}},
	})
	made.SetUp(clusterupgrade.New(wiring.ClusterUpgrade(made.Seed, mergedcatalogue.New(logr.Discard()), clusterupgrade.Options{
		CatalogueNamespace: w.catalogue, Rules: w.rules,
	})))
	made.Run()
	return made.Stop
}

// installed says what the installation of the add-on would: a version, made for a Kubernetes version.
func (w *world) installed(version, kubernetes string, ready metav1.ConditionStatus) {
	w.t.Helper()
	one := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.key.Namespace, Name: "one.cni", Labels: map[string]string{v1.LabelSet: "network"},
	}}
	one.Spec = v1.AddonInstallationSpec{ClusterName: "one", AddonRef: v1.AddonReference{Name: "cni"}, TargetNamespace: "kube-system"}
	if err := w.client.Create(w.t.Context(), one.DeepCopy()); client.IgnoreAlreadyExists(err) != nil {
		w.t.Fatal(err)
	}
	expect.Eventually(w.t, expect.Patience, func() error {
		if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(one), one); err != nil {
			return err
		}
		one.Status.Version = version
		one.Status.LastApplied = &v1.AppliedState{Addon: "cni", Version: version, K8sVersion: kubernetes}
		reason := v1.ReasonProgressing
		if ready == metav1.ConditionUnknown {
			reason = v1.ReasonClusterUnreachable
		}
		meta.SetStatusCondition(&one.Status.Conditions, metav1.Condition{
			Type: v1.ConditionReady, Status: ready, Reason: reason, ObservedGeneration: one.Generation,
		})
		return w.client.Status().Update(w.t.Context(), one)
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

// offersOnly leaves one version of the add-on.
func (w *world) offersOnly(version string) {
	w.t.Helper()
	found := &v1.AddonCatalogue{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.catalogue, Name: "cni"}, found); err != nil {
		w.t.Fatal(err)
	}
	addon := &found.Spec.Addons[0]
	addon.Versions = slices.DeleteFunc(addon.Versions, func(one v1.AddonVersion) bool { return one.Version != version })
	if err := w.client.Update(w.t.Context(), found); err != nil {
		w.t.Fatal(err)
	}
}

// expectGivenUp waits for the event that names who was not right.
func (w *world) expectGivenUp(who string) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		var list eventsv1.EventList
		if err := w.client.List(w.t.Context(), &list, client.InNamespace(w.key.Namespace)); err != nil {
			return err
		}
		var told []string
		for _, item := range list.Items {
			if item.Reason == v1.EventUpgradeNotHeld && item.Regarding.Name == w.key.Name && strings.Contains(item.Note, who) {
				return nil
			}
			told = append(told, item.Reason+": "+item.Note)
		}
		return fmt.Errorf("no event %s names %s: %q", v1.EventUpgradeNotHeld, who, told)
	})
}

// ask for a version of Kubernetes, once the hook lasts: Cluster API may take it off with its own last annotation, and an upgrade that is
// pending already gets none.
func (w *world) ask(version string) {
	w.t.Helper()
	for since := time.Now(); time.Since(since) < steady; {
		if _, isOn := w.read().GetAnnotations()[capiv1.AnnotationBeforeUpgrade]; !isOn {
			since = time.Now()
		}
	}
	expect.Eventually(w.t, expect.Patience, func() error { // its webhook asks the user cluster first
		return clusterapi.SetVersion(w.t.Context(), w.client, w.key, version)
	})
}

// says waits for condition UpgradeHeld.
func (w *world) says(status, reason string) {
	w.t.Helper()
	key := w.availableKey()
	expect.Object(w.t, w.client, &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}},
		func(found *v1.AddonCatalogue) error {
			return expect.Condition(found, v1.ConditionUpgradeHeld, status, reason)
		})
}

// at waits until Cluster API has brought control plane and workers to these versions.
func (w *world) at(controlPlane, workers string) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error { return w.isAt(controlPlane, workers) })
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

// read gives the Cluster.
func (w *world) read() *unstructured.Unstructured {
	w.t.Helper()
	object := w.object()
	if err := w.client.Get(w.t.Context(), w.key, object); err != nil {
		w.t.Fatal(err)
	}
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
