package coreaddon_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

const monitoringItem = `
- name: monitoring
  addonRef: {name: prometheus}
  targetNamespace: monitoring
  values: {replicas: 2, storage: {class: fast}}
`

func TestKeepsTheSet(t *testing.T) {
	w := newWorld(t)
	of := w.cluster("kept")
	w.merged(v1.CatalogueCore, "kube-proxy")
	w.merged(v1.CatalogueCustom, "rbac") // not from a Core catalogue: missing
	w.start()
	proxy := w.exists(of, "kube-proxy")
	if proxy.Spec.AddonRef.Version != "" || proxy.Spec.TargetNamespace != "kube-system" {
		t.Errorf("kube-proxy is %+v", proxy.Spec)
	}
	w.reports(of, "4 total, 0 ready, 0 failing, 3 missing", "False CoreAddonsNotReady")
	w.said(proxy, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	w.reports(of, "4 total, 1 ready, 0 failing, 3 missing", "True CoreAddonsReady")
	expect.ChangeStatus(t, w.seed, proxy, func(proxy *v1.AddonInstallation) { proxy.Status.Version = "1.2.3" }) // it alone
	missing := []string{"kubeadm-configmap (kubeadm-configmap)  Missing", "kubelet-configmap (kubelet-configmap)  Missing", "rbac (rbac)  Missing"}
	w.lists(of, append([]string{"kube-proxy (kube-proxy) 1.2.3 Ready " + v1.ReasonReady}, missing...)...)
	w.said(proxy, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonUnhealthy)
	w.reports(of, "4 total, 0 ready, 1 failing, 3 missing", "False CoreAddonsNotReady")
	w.lists(of, append([]string{"kube-proxy (kube-proxy) 1.2.3 Failing Unhealthy"}, missing...)...)

	// A later catalogue provides the missing add-on.
	w.merged(v1.CatalogueCore, "kubelet-configmap")
	w.exists(of, "kubelet-configmap")

	// No version fits: that is reported, and the installation stays.
	w.said(proxy, v1.ConditionCompatible, metav1.ConditionFalse, v1.ExcludedK8sVersion)
	w.event(v1.EventNothingFits, v1.ExcludedK8sVersion)
	w.exists(of, "kube-proxy")
}

func TestPutsEditsBack(t *testing.T) {
	w := newWorld(t)
	of := w.cluster("edited")
	w.merged(v1.CatalogueCustom, "prometheus")
	w.listed(monitoringItem)
	stop := w.start()
	w.exists(of, "monitoring")
	for _, edit := range []struct {
		why    string
		change func(*v1.AddonInstallation)
	}{
		{"the finalizer off", func(i *v1.AddonInstallation) { i.Finalizers = nil }},
		{"the label off", func(i *v1.AddonInstallation) { i.Labels = nil }},
		{"paused", func(i *v1.AddonInstallation) { i.Spec.Paused = true }},
		{"a version", func(i *v1.AddonInstallation) { i.Spec.AddonRef.Version = "0.9.0" }},
		{"another policy", func(i *v1.AddonInstallation) { i.Spec.DeletionPolicy = v1.DeletionOrphan }},
		{"a value of the item", func(i *v1.AddonInstallation) { i.Spec.Values = raw(`{"replicas":1}`) }},
	} {
		expect.Change(w.t, w.seed, installationOf(of, "monitoring"), edit.change)
		expect.Object(t, w.seed, installationOf(of, "monitoring"), func(found *v1.AddonInstallation) error {
			spec := found.Spec
			if !hasProtection(found) || found.Labels[v1.LabelManagedBy] == "" || spec.Paused || spec.AddonRef.Version != "" ||
				spec.AddonRef.Name != "prometheus" || spec.DeletionPolicy != v1.DeletionDelete || spec.Values == nil ||
				string(spec.Values.Raw) != `{"replicas":2,"storage":{"class":"fast"}}` {
				return fmt.Errorf("%s: it is %+v, %+v", edit.why, found.ObjectMeta, spec)
			}
			return nil
		})
	}

	// Values that a cluster admin adds stay, also when the item changes; values that leave the item are removed.
	expect.Change(w.t, w.seed, installationOf(of, "monitoring"), func(i *v1.AddonInstallation) {
		i.Spec.Values = raw(`{"replicas":2,"storage":{"class":"fast","size":"5Gi"},"debug":true}`)
	})
	w.listed(`[{name: monitoring, addonRef: {name: prometheus}, targetNamespace: monitoring, values: {storage: {class: slow}}}]`)
	expect.Object(t, w.seed, installationOf(of, "monitoring"), func(found *v1.AddonInstallation) error {
		const want = `{"debug":true,"storage":{"class":"slow","size":"5Gi"}}`
		if found.Spec.Values == nil || string(found.Spec.Values.Raw) != want {
			return fmt.Errorf("values are %s, want %s", found.Spec.Values.Raw, want)
		}
		return nil
	})

	// Nothing is written if all is as desired, also after a restart.
	before := w.exists(of, "monitoring").ResourceVersion
	stop()
	w.start()
	w.reports(of, "5 total, 0 ready, 0 failing, 4 missing", "False CoreAddonsNotReady")
	w.steady(func() error {
		if after := w.exists(of, "monitoring").ResourceVersion; after != before {
			return fmt.Errorf("written: %s, %s", before, after)
		}
		return nil
	})
}

func TestDeletionInEveryOrder(t *testing.T) {
	w := newWorld(t)
	of, other := w.cluster("guarded"), w.cluster("other")
	w.merged(v1.CatalogueCustom, "prometheus")
	w.listed(monitoringItem)
	stop := w.start()
	w.exists(of, "monitoring")
	w.exists(other, "monitoring")

	// In the set: the installation stays, and an event says why; also while the controller is down.
	w.remove(installationOf(of, "monitoring"))
	w.event(v1.EventDeletionBlocked, "core add-on")
	stop()
	w.remove(installationOf(other, "monitoring"))
	w.start()
	w.event(v1.EventDeletionBlocked)
	w.steady(func() error {
		for _, cluster := range []*kkpv1.Cluster{of, other} {
			if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(installationOf(cluster, "monitoring")), installationOf(cluster, "monitoring")); err != nil {
				return err
			}
		}
		return nil
	})

	// A client removes the finalizers: the controller recreates the installation.
	was := w.exists(of, "monitoring").UID
	expect.Change(w.t, w.seed, installationOf(of, "monitoring"), func(i *v1.AddonInstallation) { i.Finalizers = nil })
	expect.Object(t, w.seed, installationOf(of, "monitoring"), func(found *v1.AddonInstallation) error {
		if found.UID == was || !hasProtection(found) {
			return fmt.Errorf("it is still the old one")
		}
		return nil
	})

	// Out of the set: an installation that was being deleted is removed, and so is one that was not.
	w.listed("[]")
	expect.Gone(t, w.seed, installationOf(other, "monitoring"))
	expect.Gone(t, w.seed, installationOf(of, "monitoring"))
	w.reports(of, "4 total, 0 ready, 0 failing, 4 missing", "True CoreAddonsReady")
}

func TestAClusterThatGoesIsNeverHeld(t *testing.T) {
	w := newWorld(t)
	going, nameless := w.cluster("going"), w.cluster("vanishing")
	w.merged(v1.CatalogueCore, "rbac")
	w.start()
	w.exists(going, "rbac")
	w.exists(nameless, "rbac")
	expect.Change(w.t, w.seed, going, func(c *kkpv1.Cluster) { c.Finalizers = []string{"example.com/kkp"} })
	for _, cluster := range []*kkpv1.Cluster{going, nameless} {
		w.remove(cluster)
		w.remove(installationOf(cluster, "rbac"))
		expect.Gone(t, w.seed, installationOf(cluster, "rbac"))
	}
	expect.Change(w.t, w.seed, going, func(c *kkpv1.Cluster) { c.Finalizers = nil })
}

func TestNamespaceThatIsDeletedUnderALivingCluster(t *testing.T) {
	w := newWorld(t)
	of := w.cluster("undermined")
	w.merged(v1.CatalogueCore, "rbac")
	w.start()
	w.exists(of, "rbac")
	w.remove(kit.Namespace(of.Status.NamespaceName))
	w.event(v1.EventDeletionBlocked)
	w.remove(of)
	w.remove(installationOf(of, "rbac"))
	expect.Gone(t, w.seed, installationOf(of, "rbac"))
}

func TestRemovesNothingOverWhatIsNotKnown(t *testing.T) {
	w := newWorld(t)
	of := w.cluster("blurred")
	rbac := w.merged(v1.CatalogueCore, "rbac")
	w.merged(v1.CatalogueCore, "kube-proxy")
	w.merged(v1.CatalogueCustom, "prometheus")
	w.listed(monitoringItem)
	stop := w.start()
	names := []string{"rbac", "kube-proxy", "monitoring"}
	for _, name := range names {
		w.exists(of, name)
	}
	// The catalogue is empty, the Cluster has lost its fields.
	w.remove(rbac)
	expect.Change(w.t, w.seed, of, func(c *kkpv1.Cluster) { c.Spec = kkpv1.ClusterSpec{DisableCSIDriver: true} })
	w.event(v1.EventCoreSetUnknown)
	// The list can't be read: after the start, and at the start.
	w.listed("- {")
	w.event(v1.EventListRefused, "; the last valid list stays in use")
	stop()
	w.start()
	const none = "; no list was valid since this process started, and the core add-ons stay as they are"
	w.event(v1.EventListRefused, none)
	w.expectList(of, "Unknown CoreSetUnknown", "refused", none)
	w.reports(of, "3 total, 0 ready, 0 failing, 0 missing", "Unknown CoreSetUnknown")
	// There is no list any longer.
	w.remove(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: "custom-core-addons"}})
	w.steady(func() error {
		for _, name := range names {
			found := installationOf(of, name)
			if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(found), found); err != nil || !found.DeletionTimestamp.IsZero() {
				return fmt.Errorf("%s goes: %w", name, err)
			}
		}
		return nil
	})
}

func TestLeavesOthersAlone(t *testing.T) {
	w := newWorld(t)
	of, paused := w.cluster("shared"), w.cluster("paused")
	expect.Change(w.t, w.seed, paused, func(c *kkpv1.Cluster) { c.Spec.Pause = true })
	somebodys := installationOf(of, "rbac")
	somebodys.Spec = v1.AddonInstallationSpec{AddonRef: v1.AddonReference{Name: "mine"}, TargetNamespace: "mine"}
	expect.Create(w.t, w.seed, somebodys)
	w.merged(v1.CatalogueCore, "rbac")
	w.merged(v1.CatalogueCore, "kube-proxy")
	w.start()
	w.exists(of, "kube-proxy")
	w.reports(of, "4 total, 0 ready, 0 failing, 2 missing", "False NameTaken")
	w.lists(of, "kube-proxy (kube-proxy)  Progressing", "kubeadm-configmap (kubeadm-configmap)  Missing",
		"kubelet-configmap (kubelet-configmap)  Missing", "rbac (rbac)  NameTaken")
	found := expect.Object(t, w.seed, installationOf(of, "rbac"), func(*v1.AddonInstallation) error { return nil })
	if found.Spec.AddonRef.Name != "mine" || len(found.Finalizers) != 0 || found.ResourceVersion != somebodys.ResourceVersion {
		t.Errorf("somebody's installation was touched: %+v", found)
	}
	if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(installationOf(paused, "rbac")), installationOf(paused, "rbac")); err == nil {
		t.Error("a paused cluster got an installation")
	}
	w.remove(somebodys)
	w.exists(of, "rbac")
}

func raw(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }

func (w *world) remove(object client.Object) {
	w.t.Helper()
	if err := w.seed.Delete(w.t.Context(), object); client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
}
