package distributor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// key waits for the key of the marks on a seed.
func (w *world) key(cluster string) []byte {
	w.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: v1.SecretCatalogueKey}}
	expect.Object(w.t, w.client(cluster), secret, func(found *corev1.Secret) error {
		if len(found.Data[v1.MarkKeyField]) != catalogue.MarkKeySize {
			return fmt.Errorf("it holds %d bytes", len(found.Data[v1.MarkKeyField]))
		}
		return nil
	})
	return secret.Data[v1.MarkKeyField]
}

// expectMarked waits until a merged catalogue is marked with a key.
func (w *world) expectMarked(cluster, addon string, key []byte) *v1.AddonCatalogue {
	w.t.Helper()
	return expect.Object(w.t, w.client(cluster), w.merged(addon), func(object *v1.AddonCatalogue) error {
		if !catalogue.IsMarked(key, object) {
			return fmt.Errorf("mark %q is not right", object.Annotations[v1.AnnotationMark])
		}
		return nil
	})
}

// TestASeedGetsItsKeyOnceEverythingIsMarked holds the order of an upgrade: what an older release
// wrote is marked before a seed gets the key, since a seed that has it believes marks alone.
// Whatever somebody does to a mark is put back.
func TestASeedGetsItsKeyOnceEverythingIsMarked(t *testing.T) {
	w := newWorld(t)
	seed := w.client("seed")
	for _, name := range []string{w.platform, w.catalogue} {
		expect.Create(w.t, seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	w.seed("remote", kubeconfigOf("seed"))
	// Left by an older release: one that is still wanted, and one that can't be read anew.
	held := w.catalogueOf("held", map[string][]string{"old": {"1.0.0", "v1.0"}})
	expect.Create(w.t, w.master, held)
	left := w.merged("old")
	left.Labels = map[string]string{v1.LabelRole: v1.RoleMerged, v1.LabelManagedBy: "distributor"}
	left.Annotations = map[string]string{v1.AnnotationVersions: `{"1.0.0":{"digest":"x","catalogue":"held"}}`, v1.AnnotationGeneration: "1"}
	left.Spec.Addons = []v1.Addon{addonOf("old", "1.0.0")}
	expect.Create(w.t, seed, left)
	quick := func(o *distributor.Options) { o.Resync = time.Second }
	w.start(quick)
	tools := w.catalogueOf("tools", map[string][]string{"web": {"1.0.0"}})
	expect.Create(w.t, w.master, tools)
	w.expectVersions("seed", "web", "1.0.0")
	w.expectCondition(tools, v1.ConditionReady, "True", v1.ReasonDistributed)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: v1.SecretCatalogueKey}}
	if err := seed.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); client.IgnoreNotFound(err) != nil || err == nil {
		t.Fatalf("the seed has the key while an object of before is not marked: %v", err)
	}
	expect.Change(w.t, w.master, held, func(object *v1.AddonCatalogue) { object.Spec.Addons = []v1.Addon{addonOf("old", "1.0.0")} })
	key := w.key("seed")
	w.expectMarked("seed", "old", key)
	web := w.expectMarked("seed", "web", key)

	for _, tamper := range []func(*v1.AddonCatalogue){
		func(o *v1.AddonCatalogue) { o.Annotations[v1.AnnotationMark] = catalogue.MarkKeyID(key) + ":00" },
		func(o *v1.AddonCatalogue) { o.Annotations[v1.AnnotationVersions] = `{}` },
		func(o *v1.AddonCatalogue) { o.Annotations[v1.AnnotationLeftVersions] = `["1.0.0"]` },
		func(o *v1.AddonCatalogue) { o.Spec.Addons[0].Versions[0].Version = "99.0.0" },
	} {
		tamper(web)
		expect.Update(t, seed, web)
		if catalogue.IsMarked(key, web) {
			t.Error("what was edited is still believed")
		}
		web = w.expectMarked("seed", "web", key)
	}

	// Another process goes on with the key; one that is deleted is made anew, and all is marked
	// with it.
	w.end()
	w.start(quick)
	w.expectMarked("seed", "web", key)
	expect.Delete(t, seed, secret)
	expect.Object(t, seed, secret, func(found *corev1.Secret) error {
		if catalogue.MarkKeyID(found.Data[v1.MarkKeyField]) == "" {
			return fmt.Errorf("there is no key")
		}
		return nil
	})
	w.expectMarked("seed", "web", w.key("seed"))
	w.expectMarked("seed", "old", w.key("seed"))
}

// TestASquatterOnASeedHoldsUpItsAddonOnly: an object that is not ours has the name of an add-on. It
// is told with the way out, and the rest arrives.
func TestASquatterOnASeedHoldsUpItsAddonOnly(t *testing.T) {
	w := newWorld(t)
	seed := w.client("seed")
	expect.Create(w.t, seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.catalogue}})
	squatter := w.merged("newtool")
	squatter.Spec.Addons = []v1.Addon{addonOf("newtool", "99.0.0")}
	expect.Create(w.t, seed, squatter)
	w.seed("remote", kubeconfigOf("seed"))
	w.start(func(o *distributor.Options) { o.Resync = time.Second })
	tools := w.catalogueOf("tools", map[string][]string{"newtool": {"1.0.0"}, "web": {"1.0.0"}})
	expect.Create(w.t, w.master, tools)
	w.expectVersions("seed", "web", "1.0.0")
	expect.Object(t, w.master, tools, func(object *v1.AddonCatalogue) error {
		rows := object.Status.Seeds
		if len(rows) != 1 || rows[0].Synced || !strings.Contains(rows[0].Message, `AddonCatalogue "newtool": it exists on the seed and the master did not write it`) ||
			!strings.Contains(rows[0].Message, "nothing is installed from it") {
			return fmt.Errorf("rows %+v", rows)
		}
		return expect.Condition(object, v1.ConditionReady, "False", v1.ReasonDistributing)
	})
	w.expectVersions("seed", "newtool", "99.0.0") // it is left alone
	expect.Delete(t, seed, squatter)
	w.expectVersions("seed", "newtool", "1.0.0")
	w.expectCondition(tools, v1.ConditionReady, "True", v1.ReasonDistributed)
}

// TestAGeneratedCatalogueIsCoreByItsOwnerOnly: who may write what controllers write, and has not
// manage-core, brings no Core add-on in by a generated catalogue.
func TestAGeneratedCatalogueIsCoreByItsOwnerOnly(t *testing.T) {
	w := newWorld(t)
	w.seed("local", kubeconfigOf("master"))
	w.start()
	inGit := func(name string, kind v1.CatalogueType) *v1.AddonCatalogue {
		parent := w.catalogueOf(name, nil)
		parent.Spec.Type, parent.Spec.Git = kind, &v1.CatalogueGit{Remote: "https://git.example.com/" + v1.GitRemote(name)}
		expect.Create(w.t, w.master, parent)
		return parent
	}
	generated := func(name string, owner *v1.AddonCatalogue) *v1.AddonCatalogue {
		child := w.catalogueOf(name, map[string][]string{name: {"99.0.0"}})
		child.Spec.Type, child.Labels = v1.CatalogueCore, map[string]string{v1.LabelRole: v1.RoleGenerated}
		if owner != nil {
			child.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: v1.GroupVersion.String(), Kind: "AddonCatalogue", Name: owner.Name, UID: owner.UID, Controller: new(true),
			}}
		}
		expect.Create(w.t, w.master, child)
		return child
	}
	plain := w.catalogueOf("plain", map[string][]string{"plain": {"1.0.0"}})
	plain.Spec.Type = v1.CatalogueCore
	expect.Create(w.t, w.master, plain)
	gone := inGit("core-of-before", v1.CatalogueCore)
	expect.Delete(t, w.master, gone)
	refused := []*v1.AddonCatalogue{
		generated("orphan", nil), generated("of-custom", inGit("custom-git", v1.CatalogueCustom)), generated("of-none", gone),
		generated("of-one-not-in-git", plain),
	}
	generated("right", inGit("core-git", v1.CatalogueCore))
	w.expectVersions("master", "right", "99.0.0")
	for _, child := range refused {
		w.expectCondition(child, v1.ConditionReady, "False", v1.ReasonCoreNotAllowed)
		if err := w.master.Get(t.Context(), client.ObjectKeyFromObject(w.merged(child.Name)), w.merged(child.Name)); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("add-on %q reaches the seed: %v", child.Name, err)
		}
	}
}

// TestClustersAreListedToLeaveAVersion: annotation leave-versions on a Core catalogue reaches the
// seeds with the merged object of the add-on, also while another catalogue has the version; the
// catalogue tells how far that is.
func TestClustersAreListedToLeaveAVersion(t *testing.T) {
	w := newWorld(t)
	w.seed("local", kubeconfigOf("master"))
	platform := w.catalogueOf("platform", map[string][]string{"rbac": {"1.0.0"}})
	hijacker := w.catalogueOf("mine", map[string][]string{"rbac": {"99.0.0"}})
	custom := w.catalogueOf("custom", map[string][]string{"web": {"1.0.0"}})
	platform.Spec.Type, hijacker.Spec.Type = v1.CatalogueCore, v1.CatalogueCore
	custom.Annotations = map[string]string{v1.AnnotationLeaveVersions: "rbac=1.0.0"} // is no Core catalogue's
	for _, object := range []*v1.AddonCatalogue{platform, hijacker, custom} {
		expect.Create(w.t, w.master, object)
	}
	place := fmt.Sprintf("cluster-leaving-%d", worlds)
	expect.Create(w.t, w.master, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: place}})
	installed := given.Installation(place, "rbac", "rbac", "kube-system", given.Core)
	expect.Create(w.t, w.master, installed)
	reach := func(version string) {
		installed.Status.Version = version
		expect.UpdateStatus(t, w.master, installed)
	}
	reach("99.0.0")
	w.start(func(o *distributor.Options) { o.CountEvery, o.Resync = 500*time.Millisecond, 500*time.Millisecond })
	before := w.expectVersions("master", "rbac", "99.0.0", "1.0.0")
	expect.Change(w.t, w.master, platform, func(object *v1.AddonCatalogue) {
		object.Annotations = map[string]string{v1.AnnotationLeaveVersions: "rbac=99.0.0"}
	})
	expect.Object(t, w.master, w.merged("rbac"), func(object *v1.AddonCatalogue) error {
		if object.Annotations[v1.AnnotationLeftVersions] != `["99.0.0"]` || object.Generation != before.Generation {
			return fmt.Errorf("annotations %v", object.Annotations)
		}
		return nil
	})
	w.expectCondition(platform, v1.ConditionLeaving, "True", v1.ReasonVersionsInUse, "rbac 99.0.0", " 1 installations on 1 seeds")
	reach("1.0.0")
	w.expectCondition(platform, v1.ConditionLeaving, "False", v1.ReasonVersionsLeft)
	expect.Event(t, w.master, platform, v1.EventLeft, "clusters leave rbac 99.0.0")
	expect.Event(t, w.master, platform, v1.EventLeft, "no installation has rbac 99.0.0")
	expect.Change(w.t, w.master, platform, func(object *v1.AddonCatalogue) { object.Annotations[v1.AnnotationLeaveVersions] = "rbac" })
	w.expectCondition(platform, v1.ConditionLeaving, "False", v1.ReasonLeaveUnreadable)
	expect.Change(w.t, w.master, platform, func(object *v1.AddonCatalogue) { object.Annotations = nil })
	expect.Object(t, w.master, platform, func(object *v1.AddonCatalogue) error {
		if reported := meta.FindStatusCondition(object.Status.Conditions, v1.ConditionLeaving); reported != nil {
			return fmt.Errorf("it still says %+v", reported)
		}
		return nil
	})
	if web := w.expectVersions("master", "web", "1.0.0"); web.Annotations[v1.AnnotationLeftVersions] != "" {
		t.Errorf("a Custom catalogue has versions left: %v", web.Annotations)
	}
}
