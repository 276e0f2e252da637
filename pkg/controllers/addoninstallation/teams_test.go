package addoninstallation_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// TestInstallationsAreCompleted fails if the spec is not completed from the catalogue, if an installation is not
// deleted with its Cluster, if status or records name another kind, if the applied Kubernetes version is not reported,
// or if a complete installation is written.
func TestInstallationsAreCompleted(t *testing.T) {
	t.Parallel()
	m := newTeam(t)
	into := m.unique("completed")
	m.publishInto("web", into)
	m.publishInto("bare", "")
	one, two := m.add("one", "both"), m.add("two", "elsewhere")
	m.start()
	first, second := m.requestIn("one", "one-web", "web"), m.requestIn("two", "two-web", "web")
	bare, lost := m.requestIn("one", "bare", "bare"), m.requestIn("", "lost", "web")
	whole := m.install("web", "1.0.0")
	for object, of := range map[*kubermaticv1.AddonInstallation]string{first: string(one.GetUID()), second: string(two.GetUID())} {
		m.ready(object)
		spec, state := object.Spec, object.Status
		if spec.TargetNamespace != into || !spec.CreateNamespace {
			t.Errorf("%s is for namespace %q, made: %t", object.Name, spec.TargetNamespace, spec.CreateNamespace)
		}
		if state.Cluster == nil || state.Cluster.Group != "cluster.x-k8s.io" || string(state.Cluster.UID) != of {
			t.Errorf("%s belongs to %v", object.Name, state.Cluster)
		}
		if state.LastApplied == nil || state.LastApplied.K8sVersion != "1.36.3" {
			t.Errorf("%s was made for %+v", object.Name, state.LastApplied)
		}
		if got := len(m.records()[m.owner+" "+of]); got != 1 {
			t.Errorf("cluster of %s owns %d records: %v", object.Name, got, m.records())
		}
	}
	m.expectOwner(first, one)
	m.expectOwner(second, two)
	for _, user := range []client.Client{m.seed, m.elsewhere()} {
		if err := user.Get(t.Context(), client.ObjectKey{Namespace: into, Name: "settings"}, &corev1.ConfigMap{}); err != nil {
			t.Error(err)
		}
	}
	m.expectReady(bare, kubermaticv1.ReasonNamespaceUnset, "set spec.targetNamespace", `add-on "bare"`)
	m.expectReady(lost, kubermaticv1.ReasonClusterUnknown, "set spec.clusterName", "one, two")
	m.ready(whole)
	if whole.Generation != 1 || len(whole.OwnerReferences) > 0 || whole.Status.Cluster.Group != "" {
		t.Errorf("one of KKP's that names its namespace was written: %+v", whole.ObjectMeta)
	}
	m.edit(bare, func(object *kubermaticv1.AddonInstallation) {
		object.Spec.TargetNamespace, object.Spec.CreateNamespace = "bare-"+into, true
	})
	m.ready(bare)
}

// TestNeighboursAreNoneOfAClusters fails if objects or names of a neighbour's installations count in a cluster:
// dependencies, Helm releases, shared objects.
func TestNeighboursAreNoneOfAClusters(t *testing.T) {
	t.Parallel()
	m := newTeam(t)
	m.renderers = bothMethods()
	into := m.unique("neighbours")
	m.publishInto("web", into)
	chart := m.charts(map[string]map[string]string{"web": webChart("1.0.0")})
	m.publishInto("chart", into+"-chart", chart("1.0.0", "web"))
	m.add("one", "both")
	m.add("two", "elsewhere")
	m.start()
	first := m.requestIn("one", "one-web", "web")
	m.ready(first)
	waits := m.requestIn("two", "waits", "web", "one-web")
	m.expectReady(waits, kubermaticv1.ReasonDependencyMissing, `installation "one-web"`, "this cluster does not have")
	m.dependOn(waits)
	m.ready(waits)
	for _, of := range []string{"one", "two"} {
		object := &kubermaticv1.AddonInstallation{}
		object.Namespace, object.Name = m.namespace, of+"-chart"
		object.Spec = kubermaticv1.AddonInstallationSpec{
			ClusterName: of, AddonRef: kubermaticv1.AddonReference{Name: "chart"}, ReleaseName: "release",
		}
		m.create(object)
		m.ready(object)
	}
	m.delete(first)
	expect.Gone(t, m.seed, first)
	if err := m.elsewhere().Get(t.Context(), client.ObjectKey{Namespace: into, Name: "settings"}, &corev1.ConfigMap{}); err != nil {
		t.Errorf("a neighbour lost what it has: %v", err)
	}
	if m.has(&corev1.ConfigMap{}, into, "settings") {
		t.Error("what was removed is there, since a neighbour has the like")
	}
}

// TestAClusterGoesAlone fails if the deletion of a Cluster affects its neighbours, leaves objects of its own, or if its
// installations are held by it.
func TestAClusterGoesAlone(t *testing.T) {
	t.Parallel()
	m := newTeam(t)
	into := m.unique("alone")
	m.publishInto("web", into)
	m.publishInto("other", into+"-three") // two and three have one API server
	one := m.add("one", "both")
	m.add("two", "elsewhere")
	m.add("three", "elsewhere")
	m.start()
	goes := m.requestIn("one", "one-web", "web")
	m.ready(goes)
	stay := []*kubermaticv1.AddonInstallation{m.requestIn("two", "two-web", "web"), m.requestIn("three", "three-other", "other")}
	before := map[string]string{}
	for _, object := range stay {
		m.ready(object)
	}
	for _, object := range stay {
		m.ready(object)
		before[object.Name] = object.ResourceVersion
	}
	records := m.records()
	settings := &corev1.ConfigMap{}
	expect.Get(t, m.elsewhere(), client.ObjectKey{Namespace: into, Name: "settings"}, settings)
	hold := func(finalizers ...string) {
		expect.Change(t, m.seed, one, func(one *unstructured.Unstructured) {
			one.SetFinalizers(finalizers)
		})
	}
	hold("example.com/hold")
	m.delete(one)
	m.expectReady(goes, kubermaticv1.ReasonClusterNotReady, "is being deleted")
	m.delete(goes)
	expect.Gone(t, m.seed, goes)
	if !m.has(&corev1.ConfigMap{}, into, "settings") {
		t.Error("something was removed from the cluster of a Cluster that is being deleted")
	}
	hold()
	expect.Gone(t, m.seed, one)
	was := m.owner + " " + string(one.GetUID())
	expect.Eventually(t, expect.Patience, func() error {
		if left := m.records()[was]; len(left) > 0 {
			return fmt.Errorf("records of a Cluster that went: %v", left)
		}
		return nil
	})
	again := m.add("one", "both")
	recreated := m.requestIn("one", "one-web", "web")
	m.adopt(recreated) // the same API server has its leftovers
	m.ready(recreated)
	m.expectOwner(recreated, again)
	if recreated.Status.Cluster.UID != again.GetUID() {
		t.Errorf("a Cluster made anew is taken for the former one: %v", recreated.Status.Cluster)
	}
	for _, object := range stay {
		if err := m.seed.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil || object.ResourceVersion != before[object.Name] {
			t.Errorf("%s was written: %v", object.Name, err)
		}
	}
	delete(records, was)
	now := m.records()
	delete(now, m.owner+" "+string(again.GetUID()))
	if !reflect.DeepEqual(records, now) {
		t.Errorf("records of neighbours were written: %v, now %v", records, now)
	}
	found := &corev1.ConfigMap{}
	if err := m.elsewhere().Get(t.Context(), client.ObjectKeyFromObject(settings), found); err != nil || found.ResourceVersion != settings.ResourceVersion {
		t.Errorf("an object of a neighbour was written: %v", err)
	}
}

// Garbage collection deletes the installations of a Cluster, and another Cluster has its name before they are gone,
// over the same user cluster as after a restore. It fails if one that is being deleted becomes the next Cluster's, and
// if it is removed as one of the next, which may have the same user cluster.
func TestWhatGoesWithAPreviousClusterIsNotTheNextOnes(t *testing.T) {
	t.Parallel()
	m := newTeam(t)
	into := m.unique("former")
	m.publishInto("web", into)
	one := m.add("one", "both")
	stop := m.startUntil()
	core := &kubermaticv1.AddonInstallation{}
	core.Namespace, core.Name, core.Finalizers = m.namespace, "one.web", []string{kubermaticv1.FinalizerCoreProtection}
	core.Spec = kubermaticv1.AddonInstallationSpec{
		ClusterName: "one", AddonRef: kubermaticv1.AddonReference{Name: "web"}, CoreAddon: true, TargetNamespace: into, CreateNamespace: true,
	}
	m.create(core)
	m.ready(core)
	stop()
	previous := *core.Status.Cluster
	m.delete(core)
	m.delete(one)
	expect.Gone(t, m.seed, one)
	m.add("one", "both")
	m.start()
	m.expectReady(core, kubermaticv1.ReasonRemoving, `the installation is removed together with the previous Cluster "one"`)
	if *core.Status.Cluster != previous {
		t.Errorf("it belongs to %+v", core.Status.Cluster)
	}
	m.edit(core, func(object *kubermaticv1.AddonInstallation) {
		object.Finalizers = slices.DeleteFunc(object.Finalizers, func(one string) bool { return one == kubermaticv1.FinalizerCoreProtection })
	})
	m.expectReady(core, kubermaticv1.ReasonClusterUnknown, `the installation belongs to a previous Cluster "one"`)
}
