package coreaddon_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// TestAddonsReadyWaitsForWhatHasASlot: AddonsReady follows the conditions that upgrades of Kubernetes wait for. The
// test fails when a core add-on with a slot counts as ready although it is made for another version of Kubernetes
// (noteGates), when a set's installation with a slot does not count, or one without slot, a paused one or a user's
// one does; and when a changed version, state or slot starts no reconciliation (clusterChanged, gateChanged,
// concerns).
func TestAddonsReadyWaitsForWhatHasASlot(t *testing.T) {
	w := newWorld(t)
	of := w.cluster("slots")
	w.slotted(w.merged(v1.CatalogueCore, "kube-proxy"), v1.SlotCNI)
	storage := w.slotted(w.merged(v1.CatalogueCustom, "storage"), v1.SlotCSI)
	w.merged(v1.CatalogueCustom, "plain")
	w.start()
	network := w.exists(of, "kube-proxy")
	w.madeFor(network, "v1.36.3")
	w.reports(of, oneReady, "True CoreAddonsReady")

	mine := w.install(of, "mine", "storage", nil)
	made := w.install(of, "made", "storage", map[string]string{v1.LabelSet: "tools"})
	w.install(of, "other", "plain", map[string]string{v1.LabelSet: "tools"})
	w.waits(of, "1 of 1", "made: not Ready")
	w.said(made, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonFetchFailed)
	w.waits(of, "1 of 1", "made: FetchFailed")
	w.slotted(storage, "")
	w.reports(of, oneReady, "True CoreAddonsReady")
	w.slotted(storage, v1.SlotCSI)
	w.waits(of, "1 of 1", "made: FetchFailed")
	w.madeFor(made, "v1.36.3")
	w.reports(of, oneReady, "True CoreAddonsReady")
	w.said(mine, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonFetchFailed)

	w.upgrade(of, "v1.37.1")
	w.waits(of, "1 of 1", "kube-proxy: rendered for Kubernetes v1.36.3", " made: rendered for Kubernetes v1.36.3")
	w.madeFor(made, "v1.37.1")
	w.waits(of, "1 of 1", "kube-proxy: rendered for Kubernetes v1.36.3")
	w.madeFor(network, "v1.37.1")
	w.reports(of, oneReady, "True CoreAddonsReady")

	w.said(made, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonFetchFailed)
	w.waits(of, "1 of 1", "made: FetchFailed")
	w.rewrite(made, func() { made.Spec.Paused = true })
	w.reports(of, oneReady, "True CoreAddonsReady")
}

const oneReady = "4 total, 1 ready, 0 failing, 3 missing"

// waits until AddonsReady has this message.
func (w *world) waits(of *kkpv1.Cluster, words ...string) {
	w.t.Helper()
	expect.HasCondition(w.t, w.seed, availableOf(of), expect.Is(v1.ConditionAddonsReady, "False", v1.ReasonCoreAddonsNotReady, words...))
}

func (w *world) rewrite(object client.Object, edit func()) {
	w.t.Helper()
	expect.Change(w.t, w.seed, object, func(client.Object) { edit() })
}

func (w *world) slotted(merged *v1.AddonCatalogue, slot v1.Slot) *v1.AddonCatalogue {
	w.t.Helper()
	w.rewrite(merged, func() { merged.Spec.Addons[0].Slot = slot })
	return merged
}

func (w *world) install(of *kkpv1.Cluster, name, addon string, labels map[string]string) *v1.AddonInstallation {
	w.t.Helper()
	made := installationOf(of, name)
	made.Labels = labels
	made.Spec.AddonRef.Name, made.Spec.TargetNamespace = v1.AddonName(addon), "kube-system"
	expect.Create(w.t, w.seed, made)
	return made
}

// madeFor writes the status of the installation controller after it applied for a version.
func (w *world) madeFor(installation *v1.AddonInstallation, kubernetes string) {
	w.t.Helper()
	w.said(installation, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	expect.ChangeStatus(w.t, w.seed, installation, func(installation *v1.AddonInstallation) {
		now := metav1.Now()
		installation.Status.Version = "1.0.0"
		installation.Status.LastApplied = &v1.AppliedState{Version: "1.0.0", K8sVersion: kubernetes, Time: &now}
	})
}

// upgrade sets the version of the Cluster's control plane.
func (w *world) upgrade(of *kkpv1.Cluster, kubernetes string) {
	w.t.Helper()
	before := of.DeepCopy()
	of.Status.Versions.ControlPlane = kubernetes
	expect.PatchStatus(w.t, w.seed, of, client.MergeFrom(before))
}
