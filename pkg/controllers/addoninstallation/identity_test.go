package addoninstallation_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// elsewhere is a client of the other user cluster.
func (w *world) elsewhere() client.Client {
	w.t.Helper()
	made, err := client.New(fleet.Shared().Cluster("elsewhere").Config, client.Options{Scheme: w.seed.Scheme()})
	expect.NoError(w.t, err)
	return made
}

// lead writes the kubeconfig of a cluster of the fleet into the Cluster's Secret.
func (w *world) lead(name string) {
	w.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "internal-admin-kubeconfig"}}
	secret.Data = map[string][]byte{"kubeconfig": fleet.Shared().Cluster(name).Kubeconfig}
	expect.Update(w.t, w.seed, secret)
}

// expectSwapped waits until an installation reports that the user cluster is another one, and how to confirm it.
func (w *world) expectSwapped(objects ...*kubermaticv1.AddonInstallation) {
	w.t.Helper()
	for _, object := range objects {
		expect.HasCondition(w.t, w.seed, object, expect.Is(kubermaticv1.ConditionReady, "False", kubermaticv1.ReasonClusterSwapped))
	}
}

// kubeSystem is the UID of that namespace.
func kubeSystem(t testing.TB, c client.Client) string {
	t.Helper()
	var found corev1.Namespace
	expect.Get(t, c, client.ObjectKey{Name: "kube-system"}, &found)
	return string(found.UID)
}

// expectUntouched checks that a cluster has no namespace of an installation of this world.
func (w *world) expectUntouched(c client.Client) {
	w.t.Helper()
	var list corev1.NamespaceList
	expect.List(w.t, c, &list)
	for _, item := range list.Items {
		if strings.HasSuffix(item.Name, "-"+w.id) {
			w.t.Errorf("namespace %q was made in somebody else's cluster", item.Name)
		}
	}
}

// RS22: A user cluster that replaced another one is not written to. It fails if anything is written to it, if a removal
// ends there, or if a restart forgets the replacement.
func TestSwappedClusterIsNotWrittenTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.identities = true
	stop := w.startUntil()
	t.Cleanup(func() { stop() })
	w.publish("standing", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"}, offered{version: "2.0.0"})
	w.publish("leaving", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	w.publish("coming", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	w.publish("core", kubermaticv1.CatalogueCore, offered{version: "1.0.0"})
	staying, leaving := w.install("standing", "1.0.0"), w.install("leaving", "")
	core := w.installInto("core", "kube-node-lease", true)
	w.expectInstalled(staying, "1.0.0", "2.0.0")
	w.expectInstalled(leaving, "1.0.0", "")
	w.ready(core)

	w.lead("elsewhere")
	w.expectSwapped(staying)
	coming := w.install("coming", "")
	expect.Delete(t, w.seed, leaving)
	w.want(staying, "2.0.0")
	w.expectSwapped(staying, leaving, coming, core)

	stop()
	stop = w.startUntil()
	for range 2 { // the first may find the new process without a connection
		for _, object := range []*kubermaticv1.AddonInstallation{staying, leaving, coming} {
			w.afterAnother(object)
		}
	}
	if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(leaving), leaving); err != nil {
		t.Errorf("a removal was let go: %v", err)
	}
	if w.installed(leaving) == "" || w.installed(staying) != "1.0.0" {
		t.Error("its own cluster was written to")
	}
	w.expectSwapped(staying, leaving, coming, core)
	w.expectUntouched(w.elsewhere())
	if err := w.elsewhere().Get(t.Context(), client.ObjectKey{Namespace: "kube-node-lease", Name: "settings"}, &corev1.ConfigMap{}); err == nil {
		t.Error("a core add-on was applied to somebody else's cluster")
	}

	w.lead("both")
	w.expectInstalled(staying, "2.0.0", "")
	w.expectInstalled(coming, "1.0.0", "")
	w.ready(core)
	expect.Gone(t, w.seed, leaving)
	if w.installed(leaving) != "" {
		t.Error("the removal left its objects behind")
	}
	w.expectUntouched(w.elsewhere())
	w.expectNoEvent(kubermaticv1.EventRepaired)
}

// expectNoEvent checks that the cluster's namespace has no event with this reason.
func (w *world) expectNoEvent(reason string) {
	w.t.Helper()
	var list corev1.EventList
	expect.List(w.t, w.seed, &list, client.InNamespace(w.namespace))
	if at := slices.IndexFunc(list.Items, func(item corev1.Event) bool { return item.Reason == reason }); at >= 0 {
		w.t.Errorf("an event says %q", list.Items[at].Message)
	}
}

// TestConfirmedClusterGetsEverything fails if a restored or recreated user cluster does not get the recorded objects
// once it is confirmed, or if a removal that waited does not end then.
func TestConfirmedClusterGetsEverything(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.identities = true
	w.start()
	w.publish("kept", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	w.publish("gone", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	kept, gone := w.install("kept", ""), w.install("gone", "")
	w.expectInstalled(kept, "1.0.0", "")
	w.expectInstalled(gone, "1.0.0", "")
	w.lead("elsewhere")
	w.expectSwapped(kept)
	expect.Delete(t, w.seed, gone)
	w.expectSwapped(kept, gone)
	rebuilt := w.elsewhere()
	w.annotateCluster(kubermaticv1.AnnotationConfirmCluster, kubeSystem(t, rebuilt))
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: kept.Spec.TargetNamespace, Name: "settings"}}
	expect.Object(t, rebuilt, settings, func(settings *corev1.ConfigMap) error {
		if settings.Data["version"] != "1.0.0" {
			return fmt.Errorf("it has %v", settings.Data)
		}
		return nil
	})
	w.ready(kept)
	expect.Gone(t, w.seed, gone)
	w.lead("both")
	w.expectSwapped(kept)
}

func (w *world) annotateCluster(key, value string) {
	w.t.Helper()
	before := w.cluster.DeepCopy()
	w.cluster.Annotations = map[string]string{key: value}
	expect.Patch(w.t, w.seed, w.cluster, client.MergeFrom(before))
}

// comeBack deletes the Cluster and recreates it under its name, with another UID.
func (w *world) comeBack() {
	w.t.Helper()
	before := w.cluster.DeepCopy()
	w.delete(w.cluster)
	expect.Gone(w.t, w.seed, before)
	w.cluster = &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: before.Name}, Spec: before.Spec}
	w.create(w.cluster)
	w.cluster.Status = before.Status
	expect.UpdateStatus(w.t, w.seed, w.cluster)
	if w.cluster.UID == before.UID {
		w.t.Fatal("the Cluster has the UID of before")
	}
}

// expectBackAgain waits until an installation is Ready and belongs to the present Cluster.
func (w *world) expectBackAgain(object *kubermaticv1.AddonInstallation, version string) {
	w.t.Helper()
	expect.Object(w.t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
		if known := object.Status.Cluster; known == nil || known.UID != w.cluster.UID {
			return fmt.Errorf("it belongs to %+v", known)
		}
		return expect.Condition(object, kubermaticv1.ConditionReady, "True", "")
	})
	w.expectInstalled(object, version, "")
}

// TestClusterThatComesBackGoesOn fails if the objects of a Cluster that returns with another UID count as foreign, with
// records or without; if the records are deleted with the previous Cluster; and if a later removal leaves objects.
func TestClusterThatComesBackGoesOn(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		why     string
		records bool
	}{{"with its records", true}, {"without", false}} {
		t.Run(test.why, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.identities = true
			stop := w.startUntil()
			t.Cleanup(func() { stop() })
			w.publish("back", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
			object := w.install("back", "")
			w.expectInstalled(object, "1.0.0", "")
			before := w.settings(object)
			stop()
			w.comeBack()
			if !test.records {
				w.dropRecords()
			}
			stop = w.startUntil()
			w.expectBackAgain(object, "1.0.0")
			if after := w.settings(object); after.UID != before.UID {
				t.Error("the object was made anew")
			}
			expect.Eventually(t, expect.Patience, w.recordsBelong)
			w.publish("back", kubermaticv1.CatalogueCustom, offered{version: "2.0.0"})
			w.expectBackAgain(object, "2.0.0")
			if err := w.recordsBelong(); err != nil {
				t.Error(err)
			}
			w.delete(object)
			expect.Gone(t, w.seed, object)
			if w.installed(object) != "" {
				t.Error("its objects are left")
			}
		})
	}
}

func (w *world) recordSecrets() []corev1.Secret {
	w.t.Helper()
	var list corev1.SecretList
	err := w.seed.List(w.t.Context(), &list, client.InNamespace(w.namespace), client.MatchingFields{"type": revision.SecretType})
	expect.NoError(w.t, err)
	return list.Items
}

// dropRecords removes the records, some of which may already be in deletion with the Cluster that owned them.
func (w *world) dropRecords() {
	w.t.Helper()
	for _, item := range w.recordSecrets() {
		if err := w.seed.Delete(w.t.Context(), &item); client.IgnoreNotFound(err) != nil {
			w.t.Fatal(err)
		}
	}
}

// recordsBelong returns an error unless there are records that all belong to the present Cluster.
func (w *world) recordsBelong() error {
	w.t.Helper()
	found := w.recordSecrets()
	if len(found) == 0 {
		return errors.New("there are no records")
	}
	for _, item := range found {
		if uid := item.OwnerReferences[0].UID; uid != w.cluster.UID {
			return fmt.Errorf("record %q belongs to %s", item.Name, uid)
		}
	}
	return nil
}

// TestClusterOfAPreviousNameStartsEmpty fails if a Cluster with the name of a previous one counts as that one although it
// has another user cluster: the recorded objects would be written there.
func TestClusterOfAPreviousNameStartsEmpty(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.identities = true
	stop := w.startUntil()
	t.Cleanup(func() { stop() })
	w.publish("former", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	object := w.install("former", "")
	w.expectInstalled(object, "1.0.0", "")
	before := w.settings(object)
	stop()
	w.comeBack()
	w.lead("elsewhere")
	stop = w.startUntil()
	w.expectBackAgain(object, "1.0.0")
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: object.Spec.TargetNamespace, Name: "settings"}}
	expect.Object(t, w.elsewhere(), settings, func(settings *corev1.ConfigMap) error {
		own := ownership.Owner{ClusterUID: w.cluster.UID, Installation: object.Name}.ID()
		if has := settings.Labels[kubermaticv1.LabelInstallation]; has != own {
			return fmt.Errorf("it carries ID %s, want %s", has, own)
		}
		return nil
	})
	if diff := cmp.Diff(before, w.settings(object)); diff != "" {
		t.Errorf("the former user cluster was written to (-before +after):\n%s", diff)
	}
}
