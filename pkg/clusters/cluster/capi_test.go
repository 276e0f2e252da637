package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/world"
)

// planeKind is a kind of control planes of a provider.
var planeKind = schema.GroupVersionKind{Group: "controlplane.cluster.x-k8s.io", Version: "v1", Kind: "PlayedControlPlane"}

var bothKinds = cluster.Kinds{
	Served:        []schema.GroupKind{target.KindKKP, target.KindClusterAPI},
	ControlPlanes: []schema.GroupResource{{Group: planeKind.Group, Resource: "playedcontrolplanes"}},
}

func planeCRD() *apiextensionsv1.CustomResourceDefinition {
	free := true
	open := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &free}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "playedcontrolplanes." + planeKind.Group
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: planeKind.Group, Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: planeKind.Kind, ListKind: planeKind.Kind + "List", Plural: "playedcontrolplanes"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: planeKind.Version, Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": open, "status": open},
			}},
		}},
	}
	return crd
}

// management is a seed that serves both kinds of Clusters.
type management struct {
	client.WithWatch
	t      *testing.T
	config *rest.Config
	kind   schema.GroupVersionKind
}

func newManagement(t *testing.T, name string, install func(context.Context, *rest.Config) error, kind schema.GroupVersionKind) *management {
	t.Helper()
	m := &management{t: t, config: fleet.Shared().Cluster(name).Config, kind: kind}
	m.WithWatch = world.Client(t, m.config)
	expect.NoError(t, errors.Join(install(t.Context(), m.config), fleet.InstallDefinitions(t.Context(), m.config, planeCRD())))
	return m
}

func newest(t *testing.T) *management {
	t.Helper()
	return newManagement(t, "seed", clusterapi.InstallCRDs, clusterapi.ClusterKind)
}

// create creates a Cluster with a reference to a control plane of the same name. Edit may change it.
func (m *management) create(namespace, name string, edit func(cluster map[string]any)) *unstructured.Unstructured {
	m.t.Helper()
	expect.Ensure(m.t, m, world.Namespace(namespace))
	made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"controlPlaneRef":   map[string]any{"apiGroup": planeKind.Group, "kind": planeKind.Kind, "name": name},
		"infrastructureRef": map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "VSphereCluster", "name": name},
	}}}
	made.SetGroupVersionKind(m.kind)
	made.SetNamespace(namespace)
	made.SetName(name)
	m.write(made, edit)
	return made
}

// write creates or updates an object, and its status with a second call.
func (m *management) write(object *unstructured.Unstructured, edit func(object map[string]any)) {
	m.t.Helper()
	if edit != nil {
		edit(object.Object)
	}
	status, hasStatus := object.Object["status"]
	var err error
	if object.GetUID() == "" {
		err = m.Create(m.t.Context(), object)
	} else {
		err = m.Update(m.t.Context(), object)
	}
	if err == nil && hasStatus {
		object.Object["status"] = status
		err = m.Status().Update(m.t.Context(), object)
	}
	expect.NoError(m.t, err)
}

// plane creates a control plane.
func (m *management) plane(namespace, name string, content map[string]any) *unstructured.Unstructured {
	m.t.Helper()
	made := &unstructured.Unstructured{Object: content}
	made.SetGroupVersionKind(planeKind)
	made.SetNamespace(namespace)
	made.SetName(name)
	expect.Create(m.t, m, made)
	return made
}

// finder runs a Finders until the test ends.
func (m *management) finder(kinds cluster.Kinds) *cluster.Finders {
	m.t.Helper()
	return m.manager(kinds).Clusters
}

// manager runs a manager until the test ends.
func (m *management) manager(kinds cluster.Kinds) *world.Manager {
	m.t.Helper()
	made := world.SeedOf(m.t, m.config, "addon-catalogue", kinds)
	made.Run()
	expect.Eventually(m.t, expect.Patience, func() error { // the caches of the manager have started
		_, err := made.Clusters.List(m.t.Context())
		return err
	})
	return made
}

// watch counts the requests that a finder enqueues for a controller.
func watch(t *testing.T, made *world.Manager) *runs {
	t.Helper()
	seen := &runs{}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	expect.NoError(t, made.Clusters.Watch(made.GetCache(), seen.requests, nil).Start(t.Context(), queue))
	return seen
}

func set(path string, value any) func(map[string]any) {
	return func(object map[string]any) {
		if err := unstructured.SetNestedField(object, value, strings.Split(path, ".")...); err != nil {
			panic(err)
		}
	}
}

func all(edits ...func(map[string]any)) func(map[string]any) {
	return func(object map[string]any) {
		for _, edit := range edits {
			edit(object)
		}
	}
}

// versions is a list of versions in the form of the status.
func versions(texts ...string) []any {
	list := make([]any, len(texts))
	for i, one := range texts {
		list[i] = map[string]any{"version": one, "replicas": int64(1)}
	}
	return list
}

// TestClustersOfClusterAPIAreFound fails when a Cluster of Cluster API is not found by namespace and name among
// others, when its description differs from the table of the documentation, or when a name that Clusters of both
// kinds have means one of them.
func TestClustersOfClusterAPIAreFound(t *testing.T) {
	m := newest(t)
	initialised := set("status.initialization", map[string]any{"controlPlaneInitialized": true})
	one := m.create("team-find", "one", all(initialised, set("status.controlPlane", map[string]any{"versions": versions("v1.37.1", "v1.36.3")}),
		set("metadata.labels", map[string]any{"ring": "0"}), set("metadata.annotations", map[string]any{"cluster.x-k8s.io/paused": ""})))
	m.create("team-find", "twin", nil)
	kkp := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "twin"}}
	expect.Create(t, m, kkp)
	kkp.Status.NamespaceName = "team-find"
	expect.UpdateStatus(t, m, kkp)
	finder := m.finder(bothKinds)
	found, err := finder.Find(t.Context(), target.Ref{Namespace: "team-find", Name: "one"})
	expect.NoError(t, err)
	want := target.Description{
		Ref:               target.Ref{Kind: target.KindClusterAPI, Namespace: "team-find", Name: "one", UID: one.GetUID()},
		KubernetesVersion: "1.36.3", APIServerUp: true, Paused: true, Labels: map[string]string{"ring": "0"},
		Annotations: map[string]string{"cluster.x-k8s.io/paused": ""},
		Owner:       metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Name: "one", UID: one.GetUID()},
		Object:      found.Object,
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if live, err := finder.Live(t.Context(), found.Ref); err != nil || live.KubernetesVersion != "1.36.3" {
		t.Errorf("past caches: %v, %v", live, err)
	}
	if facts := cluster.Labels(found, "europe"); facts["addons.kubermatic.k8c.io/provider"] != "vsphere" {
		t.Errorf("its facts are %v", facts)
	}
	for why, test := range map[string]struct {
		ref  target.Ref
		says string
		kind schema.GroupKind
	}{
		"without a name it is KKP's":      {ref: target.Ref{Namespace: "team-find"}, kind: target.KindKKP},
		"one name for two":                {ref: target.Ref{Namespace: "team-find", Name: "twin"}, says: `are named "twin", of kinds`},
		"of a kind it is one":             {ref: target.Ref{Namespace: "team-find", Name: "twin", Kind: target.KindClusterAPI}, kind: target.KindClusterAPI},
		"and of the other":                {ref: target.Ref{Namespace: "team-find", Name: "twin", Kind: target.KindKKP}, kind: target.KindKKP},
		"of that name there is none":      {ref: target.Ref{Namespace: "team-find", Name: "three"}, says: "one"},
		"another namespace":               {ref: target.Ref{Namespace: "team-other", Name: "one"}, says: `no Cluster "one" has namespace "team-other": check`},
		"made anew under its name, it is": {ref: target.Ref{Namespace: "team-find", Name: "one", UID: "former"}, says: "one"},
	} {
		got, err := finder.Find(t.Context(), test.ref)
		_, isUnknown := errors.AsType[*cluster.UnknownError](err)
		if test.says == "" && (err != nil || got.Kind != test.kind) || test.says != "" && (!isUnknown || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %v, %v", why, got.Ref, err)
		}
	}
	listed, err := finder.List(t.Context())
	if err != nil || !slices.ContainsFunc(listed, func(d target.Description) bool { return d.Ref == want.Ref }) ||
		!slices.ContainsFunc(listed, func(d target.Description) bool { return d.Ref.UID == kkp.UID }) {
		t.Errorf("listed are %v, %v", listed, err)
	}
}

// TestVersionsOfClustersOfClusterAPI fails when a version comes from another field than the table says. The desired
// version counts only before any runs. Where the control plane may not be read there is no version, and the message
// says how to correct that.
func TestVersionsOfClustersOfClusterAPI(t *testing.T) {
	m := newest(t)
	finder := m.finder(bothKinds)
	for _, test := range []struct {
		name, topology, want, says string
		plane                      map[string]any
	}{
		{name: "objects-many", plane: map[string]any{"status": map[string]any{"versions": versions("v1.37.1", "v1.36.3"), "version": "v1.37.1"}}, want: "1.36.3"},
		{name: "object-one", plane: map[string]any{"status": map[string]any{"version": "v1.36.3"}, "spec": map[string]any{"version": "v1.37.1"}}, want: "1.36.3"},
		{name: "object-wanted", topology: "v1.37.1", plane: map[string]any{"spec": map[string]any{"version": "v1.36.3"}}, want: "1.36.3"},
		{name: "object-none", topology: "v1.37.1", plane: map[string]any{}, want: "1.37.1"},
		{name: "no-object", topology: "v1.37.1", says: "does not exist"},
		{name: "none", plane: map[string]any{}, says: "no version yet"},
		{name: "odd", plane: map[string]any{"status": map[string]any{"version": "newest"}}, says: "not a semantic version"},
	} {
		var edit func(map[string]any)
		if test.topology != "" {
			edit = set("spec.topology", map[string]any{"classRef": map[string]any{"name": "c"}, "version": test.topology})
		}
		m.create("team-versions", test.name, edit)
		if test.plane != nil {
			m.plane("team-versions", test.name, test.plane)
		}
		expect.Eventually(t, expect.Patience, func() error {
			found, err := finder.Find(t.Context(), target.Ref{Namespace: "team-versions", Name: test.name})
			if err == nil && (found.KubernetesVersion != test.want || !strings.Contains(found.NoVersion, test.says)) {
				err = fmt.Errorf("%s: got %q (%s)", test.name, found.KubernetesVersion, found.NoVersion)
			}
			return err
		})
	}
	m.create("team-versions", "unlisted", set("spec.controlPlaneRef", map[string]any{"apiGroup": "secrets.example.com", "kind": "Vault", "name": "x"}))
	expect.Eventually(t, expect.Patience, func() error {
		found, err := finder.Find(t.Context(), target.Ref{Namespace: "team-versions", Name: "unlisted"})
		if err != nil {
			return err
		}
		problem := cluster.NotReady(found)
		if problem == nil || !strings.Contains(problem.Message, "Vault.secrets.example.com") {
			return fmt.Errorf("got %v", problem)
		}
		return nil
	})
}

// TestTheNextStepOfAnUpgradeIsSeenWithWhatRuns: Between two steps of an upgrade, the Cluster's copy of the running
// version is older than the next version that its control plane is asked to have. The test fails when the copy counts
// first: the cluster then seems to jump from its oldest version to its last one, and add-ons for the version between
// are downgraded.
func TestTheNextStepOfAnUpgradeIsSeenWithWhatRuns(t *testing.T) {
	m := newest(t)
	finder := m.finder(bothKinds)
	m.create("team-steps", "one", all(
		set("spec.topology", map[string]any{"classRef": map[string]any{"name": "c"}, "version": "v1.37.1"}),
		set("status.controlPlane", map[string]any{"versions": versions("v1.35.4", "v1.36.3")}),
	))
	m.plane("team-steps", "one", map[string]any{"spec": map[string]any{"version": "v1.37.1"}, "status": map[string]any{"versions": versions("v1.36.3")}})
	expect.Eventually(t, expect.Patience, func() error {
		found, err := finder.Find(t.Context(), target.Ref{Namespace: "team-steps", Name: "one"})
		if err == nil && (found.KubernetesVersion != "1.36.3" || !slices.Equal(found.Upgrade.Versions, []string{"1.36.3"})) {
			err = fmt.Errorf("it is at %q, and runs %q", found.KubernetesVersion, found.Upgrade.Versions)
		}
		return err
	})
}

// runs counts requests.
type runs struct {
	mutex  sync.Mutex
	counts map[string]int
	// told is the last reported description of each Cluster.
	reported map[string]target.Description
}

func (p *runs) requests(_ context.Context, changed target.Description) []reconcile.Request {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.counts == nil {
		p.counts, p.reported = map[string]int{}, map[string]target.Description{}
	}
	p.counts[changed.Name]++
	p.reported[changed.Name] = changed
	return nil
}

func (p *runs) of(name string) int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.counts[name]
}

func (p *runs) version(name string) string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.reported[name].KubernetesVersion
}

func (p *runs) problem(name string) string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.reported[name].NoVersion
}

// TestAllVersionsAreReportedAtAStart fails when the reported descriptions at a manager's start keep their state from
// before the control planes were read: those of many Clusters with a control plane, and that of one without.
func TestAllVersionsAreReportedAtAStart(t *testing.T) {
	m := newest(t)
	names := make([]string, 40)
	for i := range names {
		names[i] = fmt.Sprintf("start-%d", i)
		m.create("team-start", names[i], nil)
		m.plane("team-start", names[i], map[string]any{"status": map[string]any{"version": "v1.36.3"}})
	}
	m.create("team-start", "planeless", nil)
	seen := watch(t, m.manager(bothKinds))
	expect.Eventually(t, expect.Patience, func() error {
		for _, name := range names {
			if reported := seen.version(name); reported != "1.36.3" {
				return fmt.Errorf("version %q is told of %s", reported, name)
			}
		}
		if problem := seen.problem("planeless"); !strings.Contains(problem, "does not exist") {
			return fmt.Errorf("of a Cluster without control plane it is told that %q", problem)
		}
		return nil
	})
}

// TestStatusOfClusterAPIWakesOnlyForWhatIsGiven fails when a write of status that changes no described field enqueues
// a request, or one that changes a described field enqueues none. It covers the status of the Cluster, and of its
// control plane.
func TestStatusOfClusterAPIWakesOnlyForWhatIsGiven(t *testing.T) {
	m := newest(t)
	made := m.create("team-quiet", "quiet", nil)
	plane := m.plane("team-quiet", "quiet", map[string]any{"status": map[string]any{"version": "v1.36.3"}})
	manager := m.manager(bothKinds)
	finder, seen := manager.Clusters, watch(t, manager)
	version := func(want string) func() error {
		return func() error {
			found, err := finder.Find(t.Context(), target.Ref{Namespace: "team-quiet", Name: "quiet"})
			if reported := seen.version("quiet"); err == nil && (found.KubernetesVersion != want || reported != want) {
				err = fmt.Errorf("its version is %q, and %q is told", found.KubernetesVersion, reported)
			}
			return err
		}
	}
	expect.Eventually(t, expect.Patience, version("1.36.3"))
	settled := seen.of("quiet")
	churn := func() {
		for i := range 50 {
			m.write(made, set("status.phase", []string{"Provisioning", "Provisioned"}[i%2]))
			plane.Object["status"].(map[string]any)["replicas"] = int64(i)
			expect.Update(t, m, plane)
		}
	}
	churn()
	m.write(made, set("metadata.labels", map[string]any{"after": "churn"})) // all earlier events have arrived by then
	expect.Eventually(t, expect.Patience, func() error {
		if seen.of("quiet") == settled {
			return errors.New("no pass for a label")
		}
		return nil
	})
	if got := seen.of("quiet"); got > settled+2 { // from before and after
		t.Errorf("%d passes for a label and 100 writes of status", got-settled)
	}
	settled = seen.of("quiet")
	churn()
	plane.Object["status"].(map[string]any)["version"] = "v1.37.1"
	expect.Update(t, m, plane)
	expect.Eventually(t, expect.Patience, version("1.37.1"))
	expect.Eventually(t, expect.Patience, func() error {
		if seen.of("quiet") == settled {
			return errors.New("no pass for a version")
		}
		return nil
	})
	if got := seen.of("quiet"); got > settled+2 {
		t.Errorf("%d passes for a version and 100 writes of status", got-settled)
	}
}

// TestAnOlderClusterAPIIsServed fails when the real CRD without v1beta2 is not read, or is read with wrong fields.
func TestAnOlderClusterAPIIsServed(t *testing.T) {
	m := newManagement(t, "other", clusterapi.InstallOlderCRDs, clusterapi.OlderClusterKind)
	made := m.create("team-older", "older", func(object map[string]any) {
		object["spec"] = map[string]any{
			"controlPlaneRef": map[string]any{
				"apiVersion": planeKind.GroupVersion().String(), "kind": planeKind.Kind, "name": "older", "namespace": "elsewhere",
			},
			"infrastructureRef": map[string]any{
				"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AWSCluster", "name": "older",
			},
			"paused": true,
		}
		object["status"] = map[string]any{"conditions": []any{map[string]any{
			"type": "ControlPlaneInitialized", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z",
		}}}
	})
	m.plane("team-older", "older", map[string]any{"status": map[string]any{"version": "v1.36.3"}})
	finder := m.finder(bothKinds)
	found, err := finder.Find(t.Context(), target.Ref{Namespace: "team-older", Name: "older"})
	expect.NoError(t, err)
	if !found.APIServerUp || !found.Paused || found.KubernetesVersion != "1.36.3" || found.Owner.APIVersion != "cluster.x-k8s.io/v1beta1" ||
		cluster.Labels(found, "")["addons.kubermatic.k8c.io/provider"] != "aws" {
		t.Errorf("found is %+v", found)
	}
	m.create("team-older", "thief", set("spec", map[string]any{ // it is not read, even if a tenant may read Secrets
		"controlPlaneRef": map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "older"},
	}))
	expect.Eventually(t, expect.Patience, func() error {
		thief, err := finder.Find(t.Context(), target.Ref{Namespace: "team-older", Name: "thief"})
		if err == nil && (thief.KubernetesVersion != "" || !strings.Contains(thief.NoVersion, "is a Secret.v1, which is not one of the kinds")) {
			err = fmt.Errorf("of a reference to a Secret it has %q (%s)", thief.KubernetesVersion, thief.NoVersion)
		}
		return err
	})
	err = finder.Annotate(t.Context(), found.Ref, func(annotations map[string]string) error { annotations["mark"] = "1"; return nil })
	if err := errors.Join(err, m.Get(t.Context(), client.ObjectKeyFromObject(made), made)); err != nil || made.GetAnnotations()["mark"] != "1" {
		t.Errorf("annotated: %v, %v", made.GetAnnotations(), err)
	}
	if name, _, _ := unstructured.NestedString(made.Object, "spec", "infrastructureRef", "name"); name != "older" {
		t.Errorf("after it was annotated it is %v", made.Object)
	}
}

// TestKindsThatAreNotNamedAreNotAskedFor fails when a request is made for a kind of clusters that is not listed,
// although it could be served.
func TestKindsThatAreNotNamedAreNotAskedFor(t *testing.T) {
	m := newest(t)
	m.create("team-none", "nobodys", nil)
	var mutex sync.Mutex
	var asked []string
	m.config = rest.CopyConfig(m.config)
	m.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			mutex.Lock()
			defer mutex.Unlock()
			asked = append(asked, request.URL.String())
			return next.RoundTrip(request)
		})
	})
	manager := m.manager(cluster.OnlyKKP)
	finder, seen := manager.Clusters, watch(t, manager)
	ref := target.Ref{Kind: target.KindClusterAPI, Namespace: "team-none", Name: "nobodys", UID: "u"}
	_, findErr := finder.Find(t.Context(), ref)
	_, namedErr := finder.Find(t.Context(), target.Ref{Namespace: "team-none", Name: "nobodys"})
	gone, goneErr := finder.Gone(t.Context(), ref)
	if _, liveErr := finder.Live(t.Context(), ref); findErr == nil || namedErr == nil || gone || goneErr != nil || liveErr == nil || seen.of("nobodys") > 0 {
		t.Errorf("found: %v, %v; gone: %t, %v; live: %v", findErr, namedErr, gone, goneErr, liveErr)
	}
	mutex.Lock()
	defer mutex.Unlock()
	if len(asked) == 0 || slices.ContainsFunc(asked, func(url string) bool { return strings.Contains(url, "cluster.x-k8s.io") }) {
		t.Errorf("asked was %v", asked)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// TestKindsOfClustersComeAndGo fails when a kind without CRD prevents the manager from starting, is an error, or is
// not found within a minute after its CRD exists; and when the deletion of CRDs makes Clusters gone.
func TestKindsOfClustersComeAndGo(t *testing.T) {
	config := fleet.ForTest(t, fleet.ClusterOptions{Name: "bare"}).Cluster("bare").Config
	if err := fleet.InstallCRDs(t.Context(), config, fleet.CRDs(t)[0]); err != nil { // the CRDs of Trellis
		t.Fatal(err)
	}
	made := world.SeedOf(t, config, "addon-catalogue", bothKinds)
	made.Clusters.LookEvery(200 * time.Millisecond)
	made.Run()
	finder, seen := made.Clusters, watch(t, made)
	if listed, err := finder.List(t.Context()); err != nil || len(listed) > 0 { // List needs no cache
		t.Fatalf("without CRDs: %v, %v", listed, err)
	}
	ref := target.Ref{Kind: target.KindClusterAPI, Namespace: "team", Name: "one", UID: "u"}
	if gone, err := finder.Gone(t.Context(), ref); gone || err != nil {
		t.Errorf("what is not served: gone %t, %v", gone, err)
	}
	m := &management{t: t, config: config, kind: clusterapi.ClusterKind, WithWatch: world.Client(t, config)}
	expect.NoError(t, errors.Join(clusterapi.InstallCRDs(t.Context(), config), fleet.InstallDefinitions(t.Context(), config, planeCRD())))
	m.create("team", "one", nil)
	expect.Create(t, m, &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "kkp"}})
	expect.Eventually(t, expect.Patience, func() error {
		listed, err := finder.List(t.Context())
		if err == nil && (len(listed) != 2 || seen.of("one") == 0 || seen.of("kkp") == 0) {
			err = fmt.Errorf("listed are %v, seen %d and %d", listed, seen.of("one"), seen.of("kkp"))
		}
		return err
	})
	for _, name := range []string{"clusters.cluster.x-k8s.io", "clusters.kubermatic.k8c.io"} {
		crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
		crd.SetName(name)
		expect.Delete(t, m, crd)
		expect.Gone(t, m, crd)
	}
	for _, ref := range []target.Ref{ref, {Kind: target.KindKKP, Name: "kkp"}, {Namespace: "team", Name: "one"}} {
		if gone, err := finder.Gone(t.Context(), ref); gone || err == nil {
			t.Errorf("without its CRD %v: gone %t, %v", ref, gone, err)
		}
	}
}
