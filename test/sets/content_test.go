package sets_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// changesContent is the story of content that changes under one version: it is broken and halts at the canary, which goes back; the rest
// keep what they have, Ready, and are looked after from their records; the fix goes canary first, and so does the way back.
func (w *world) changesContent(of *v1.AddonSet, kind v1.CatalogueType, addon string) {
	w.t.Helper()
	rest := []string{birch, cedar}
	w.says(of, v1.ReasonComplete)
	w.has(addon, "first", amber, birch, cedar)
	first := w.now(amber, addon).Spec.AddonRef.Digest
	if first == "" {
		w.t.Fatal("the canary is not pinned")
	}

	w.offer(kind, addon, w.broken("1.0.0", "second"))
	w.says(of, v1.ReasonHalted)
	if now := w.saysOf(amber, addon, [2]string{v1.ConditionReady, v1.ReasonRolledBack}); now.Spec.AddonRef.Digest == first {
		w.t.Error("the canary did not get the new content")
	}
	for _, cluster := range rest {
		w.saysOf(cluster, addon, [2]string{v1.ConditionReady, v1.ReasonReady}, [2]string{v1.ConditionCompatible, v1.ReasonPinned})
		found := w.now(cluster, addon)
		if found.Spec.AddonRef.Digest != first || found.Status.LastApplied.EntryDigest != first {
			w.t.Errorf("%s asks for %s and has %s", cluster, found.Spec.AddonRef.Digest, found.Status.LastApplied.EntryDigest)
		}
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: found.Spec.TargetNamespace, Name: "settings"}}
		expect.Delete(w.t, w.users[cluster], settings)
	}
	w.has(addon, "first", rest...)
	if text := w.text(amber, w.now(amber, addon)); text != "first" {
		w.t.Errorf("the canary has %q, and not what it had", text)
	}
	w.stay(addon, rest...)

	for _, text := range []string{"third", "first"} {
		w.offer(kind, addon, w.version("1.0.0", text))
		w.has(addon, text, amber, birch, cedar)
		w.says(of, v1.ReasonComplete)
		w.inOrder(addon, amber, rest...)
	}
	if back := w.now(birch, addon); back.Spec.AddonRef.Digest != first {
		w.t.Errorf("the content of the beginning is %s, was %s", back.Spec.AddonRef.Digest, first)
	}
}

// AC65, RS51, RS52: Content that changes under one version reaches the canary alone until it shows that it works; the others keep what they
// have, Ready and repaired. Red when a set's installations are not pinned or the pin is not looked at (all get the new content), when
// a halt doesn't hold, when what is pinned is not Ready or not repaired, or when the fix or the way back reaches all at once.
func TestContentThatChangesUnderAVersionHaltsAtTheCanary(t *testing.T) {
	w := newWorld(t)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "first"))
	w.run()
	w.changesContent(w.set("tools"), v1.CatalogueCustom, "web")
}

// AC65, RS51, RS52: The same for core add-ons under a Core set. Red besides when the set does not pin what is there when it comes, or when
// that makes or writes an object in a user cluster.
func TestCoreContentThatChangesUnderAVersionHaltsAtTheCanary(t *testing.T) {
	w := newWorld(t)
	all := []string{amber, birch, cedar}
	w.offer(v1.CatalogueCore, "rbac", w.version("1.0.0", "first"))
	w.run()
	w.has("rbac", "first", all...)
	namespace := w.now(amber, "rbac").Spec.TargetNamespace
	before := w.objects(asIs, namespace, all...)
	of := w.set("core", func(spec *v1.AddonSetSpec) { spec.Type, spec.Addons = v1.AddonSetCore, nil })
	for _, cluster := range all {
		w.pinned(cluster, "rbac")
	}
	w.has("rbac", "first", all...) // as they are asked for with their pins
	w.expectSame("objects of pinned core add-ons", before, w.objects(asIs, namespace, all...))
	w.changesContent(of, v1.CatalogueCore, "rbac")
}
