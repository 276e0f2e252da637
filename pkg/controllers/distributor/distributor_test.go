package distributor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

func TestReachesEverySeed(t *testing.T) {
	w := newWorld(t)
	w.seed("local", kubeconfigOf("master"))
	w.start()
	custom := w.catalogueOf("custom", map[string][]string{"prometheus": {"1.0.0", "v2.0.0"}})
	expect.Create(w.t, w.master, custom)
	merged := w.expectVersions("master", "prometheus", "v2.0.0", "1.0.0")
	origins := map[string]catalogue.Origin{}
	if err := json.Unmarshal([]byte(merged.Annotations[v1.AnnotationVersions]), &origins); err != nil {
		t.Fatal(err)
	}
	if origins["1.0.0"].Catalogue != "custom" || origins["1.0.0"].Digest == "" || merged.Annotations[v1.AnnotationKKPVersion] != "v2.31.0" {
		t.Errorf("annotations: %v", merged.Annotations)
	}

	// A Seed that comes later is served without a restart.
	seed := w.seed("remote", kubeconfigOf("seed"))
	w.expectVersions("seed", "prometheus", "v2.0.0", "1.0.0")
	w.expectCondition(custom, v1.ConditionReady, "True", v1.ReasonDistributed)
	expect.Object(t, w.master, custom, func(object *v1.AddonCatalogue) error {
		if len(object.Status.Seeds) != 2 || !object.Status.Seeds[0].Synced || !object.Status.Seeds[1].Synced {
			return fmt.Errorf("seeds %v", object.Status.Seeds)
		}
		return nil
	})
	w.expectSeedFigures("local synced 1", "remote synced 1")
	w.expectSyncTimes("local", "remote")

	// An edit reaches both, and waits for no look in between: those are minutes apart.
	expect.Change(w.t, w.master, custom, func(object *v1.AddonCatalogue) { object.Spec.Addons = []v1.Addon{addonOf("prometheus", "3.0.0")} })
	w.expectVersions("master", "prometheus", "3.0.0")
	w.expectVersions("seed", "prometheus", "3.0.0")

	// A Seed that goes is dropped; what it has stays.
	expect.Delete(t, w.master, seed)
	expect.Object(t, w.master, custom, func(object *v1.AddonCatalogue) error {
		if len(object.Status.Seeds) != 1 {
			return fmt.Errorf("seeds %v", object.Status.Seeds)
		}
		return nil
	})
	w.expectSeedFigures("local synced 1")
	expect.Delete(t, w.master, custom)
	expect.Gone(t, w.master, w.merged("prometheus"))
	w.expectVersions("seed", "prometheus", "3.0.0")
}

func TestReportsDuplicatesOnBothSides(t *testing.T) {
	w := newWorld(t)
	w.seed("local", kubeconfigOf("master"))
	w.start()
	first := w.catalogueOf("first", map[string][]string{"loki": {"v1.0.0"}})
	second := w.catalogueOf("second", map[string][]string{"loki": {"1.0.0", "1.1.0"}})
	second.Annotations = map[string]string{v1.AnnotationTakeOver: "loki"}
	core := w.catalogueOf("core", map[string][]string{"canal": {"1.0.0"}})
	core.Spec.Type = v1.CatalogueCore
	third := w.catalogueOf("third", map[string][]string{"canal": {"9.0.0"}})
	expect.Create(w.t, w.master, first)
	w.expectVersions("master", "loki", "v1.0.0") // and so it is the owner
	for _, object := range []*v1.AddonCatalogue{second, third, core} {
		expect.Create(w.t, w.master, object)
	}
	merged := w.expectVersions("master", "loki", "1.1.0", "1.0.0")
	w.expectVersions("master", "canal", "1.0.0")
	if merged.Spec.Type != v1.CatalogueCustom {
		t.Errorf("type %s", merged.Spec.Type)
	}
	for _, want := range []struct {
		object   *v1.AddonCatalogue
		conflict v1.CatalogueConflict
	}{
		{first, v1.CatalogueConflict{Addon: "loki", Version: "v1.0.0", WonBy: "second", Reason: v1.ReasonDuplicate}},
		{second, v1.CatalogueConflict{Addon: "loki", Version: "1.0.0", WonBy: "second", Reason: v1.ReasonDuplicate}},
		{third, v1.CatalogueConflict{Addon: "canal", WonBy: "core", Reason: v1.ReasonCoreReserved}},
	} {
		object := w.expectCondition(want.object, v1.ConditionConflicting, "True", want.conflict.Reason)
		if diff := cmp.Diff([]v1.CatalogueConflict{want.conflict}, object.Status.Conflicts); diff != "" {
			t.Errorf("conflicts of %s: %s", object.Name, diff)
		}
		w.expectCondition(object, v1.ConditionReady, "True", v1.ReasonDistributed)
	}
	w.expectCondition(core, v1.ConditionConflicting, "False", v1.ReasonNoConflict)
	expect.Event(t, w.master, first, v1.EventConflict, `add-on "loki" version "v1.0.0" is left out`, `catalogue "second"`, "precedence")
	expect.Event(t, w.master, second, v1.EventConflict, `add-on "loki" version "1.0.0"`, "other catalogues", "this one has precedence")

	// A name that is reserved later changes the type of the merged object, which the CRD keeps from
	// changing.
	expect.Change(w.t, w.master, core, func(object *v1.AddonCatalogue) {
		object.Spec.Addons = append(object.Spec.Addons, addonOf("loki", "5.0.0"))
	})
	if merged := w.expectVersions("master", "loki", "5.0.0"); merged.Spec.Type != v1.CatalogueCore {
		t.Errorf("type %s", merged.Spec.Type)
	}
}

func TestKeepsTheLastValidSpecOverARestart(t *testing.T) {
	w := newWorld(t)
	w.seed("local", kubeconfigOf("master"))
	stop := w.start()
	custom := w.catalogueOf("custom", map[string][]string{"tempo": {"1.0.0"}})
	expect.Create(w.t, w.master, custom)
	w.expectVersions("master", "tempo", "1.0.0")
	expect.Change(w.t, w.master, custom, func(object *v1.AddonCatalogue) { object.Spec.Addons = []v1.Addon{addonOf("tempo", "1.1.0")} })
	w.expectVersions("master", "tempo", "1.1.0")
	stop()

	expect.Change(w.t, w.master, custom, func(object *v1.AddonCatalogue) {
		object.Spec.Addons = []v1.Addon{addonOf("tempo", "2.0.0", "v2.0.0+again")}
	})
	w.start()
	object := w.expectCondition(custom, v1.ConditionReady, "False", v1.ReasonInvalid)
	t.Log(object.Status.Conditions)
	w.expectVersions("master", "tempo", "1.1.0")
	if kept := w.revisions(); len(kept) != 1 || !metav1.IsControlledBy(&kept[0], custom) {
		t.Errorf("kept %v", kept)
	}
	w.steady(func() error {
		return w.master.Get(t.Context(), client.ObjectKeyFromObject(w.merged("tempo")), w.merged("tempo"))
	})

	expect.Change(w.t, w.master, custom, func(object *v1.AddonCatalogue) { object.Spec.Addons = []v1.Addon{addonOf("tempo", "2.0.0")} })
	w.expectVersions("master", "tempo", "2.0.0")
	w.expectCondition(custom, v1.ConditionReady, "True", v1.ReasonDistributed)
}

func (w *world) revisions() []appsv1.ControllerRevision {
	w.t.Helper()
	var list appsv1.ControllerRevisionList
	expect.List(w.t, w.master, &list, client.InNamespace(w.platform))
	return list.Items
}

func TestIdleWritesNothing(t *testing.T) {
	w := newWorld(t)
	w.seed("local", kubeconfigOf("master"))
	w.seed("remote", kubeconfigOf("seed"))
	w.start(func(options *distributor.Options) { options.Resync = 300 * time.Millisecond })
	custom := w.catalogueOf("custom", map[string][]string{"mimir": {"1.0.0"}})
	expect.Create(w.t, w.master, custom)
	w.expectVersions("seed", "mimir", "1.0.0")
	expect.Object(t, w.master, custom, func(object *v1.AddonCatalogue) error {
		if object.Status.SyncedSeeds != 2 { // it is Ready while a seed was not reached yet
			return fmt.Errorf("seeds %+v", object.Status.Seeds)
		}
		return expect.Condition(object, v1.ConditionReady, "True", v1.ReasonDistributed)
	})
	before := w.resourceVersions(custom)
	w.steady(func() error {
		if diff := cmp.Diff(before, w.resourceVersions(custom)); diff != "" {
			return fmt.Errorf("something was written: %s", diff)
		}
		return nil
	})
}

func (w *world) resourceVersions(custom *v1.AddonCatalogue) map[string]string {
	w.t.Helper()
	versions := map[string]string{}
	for name, object := range map[string]client.Object{"master": w.merged("mimir"), "seed": w.merged("mimir")} {
		expect.Read(w.t, w.client(name), object)
		versions[name] = object.GetResourceVersion()
	}
	expect.Read(w.t, w.master, custom)
	versions["authored"] = custom.ResourceVersion
	return versions
}

func TestADeadSeedHoldsNobodyUp(t *testing.T) {
	w := newWorld(t)
	w.seed("dead", deadKubeconfig(t))
	w.seed("remote", kubeconfigOf("seed"))
	w.start()
	custom := w.catalogueOf("custom", map[string][]string{"thanos": {"1.0.0"}})
	expect.Create(w.t, w.master, custom)
	w.expectVersions("seed", "thanos", "1.0.0")
	object := w.expectCondition(custom, v1.ConditionReady, "True", v1.ReasonDistributed)
	expect.Object(t, w.master, object, func(object *v1.AddonCatalogue) error {
		rows := object.Status.Seeds
		if len(rows) != 2 || rows[0].Synced || rows[0].Message != "the API server refuses connections" || !rows[1].Synced {
			return fmt.Errorf("seeds %+v", rows)
		}
		return nil
	})
}

func TestPutsHandEditsBack(t *testing.T) {
	w := newWorld(t)
	w.seed("remote", kubeconfigOf("seed"))
	stop := w.start(func(options *distributor.Options) { options.Resync = 300 * time.Millisecond })
	custom := w.catalogueOf("custom", map[string][]string{"grafana": {"1.0.0", "1.1.0"}})
	custom.Spec.Addons[0].Description = "Dashboards."
	expect.Create(w.t, w.master, custom)
	w.expectVersions("seed", "grafana", "1.1.0", "1.0.0")
	seed := w.client("seed")

	for why, change := range map[string]func(*v1.AddonCatalogue){
		"a version less":    func(o *v1.AddonCatalogue) { o.Spec.Addons[0].Versions = o.Spec.Addons[0].Versions[:1] },
		"a text taken away": func(o *v1.AddonCatalogue) { o.Spec.Addons[0].Description = "" },
		"an add-on more":    func(o *v1.AddonCatalogue) { o.Spec.Addons = append(o.Spec.Addons, addonOf("evil", "6.6.6")) },
	} {
		expect.Change(t, seed, w.merged("grafana"), change)
		expect.Object(t, seed, w.merged("grafana"), func(object *v1.AddonCatalogue) error {
			if len(object.Spec.Addons) != 1 || len(object.Spec.Addons[0].Versions) != 2 || object.Spec.Addons[0].Description == "" {
				return fmt.Errorf("%s: still %+v", why, object.Spec.Addons)
			}
			return nil
		})
	}
	stop()

	// An edit while nobody looked shows in the generation.
	edited := w.merged("grafana")
	expect.Read(t, seed, edited)
	edited.Spec.Addons[0].Versions = edited.Spec.Addons[0].Versions[:1]
	expect.Update(t, seed, edited)
	w.start()
	w.expectVersions("seed", "grafana", "1.1.0", "1.0.0")

	// Deleted by hand, found at the next look after a restart.
	w.end()
	expect.Delete(t, seed, w.merged("grafana"))
	w.start()
	w.expectVersions("seed", "grafana", "1.1.0", "1.0.0")
}

func TestHandsMarkedSecretsOn(t *testing.T) {
	w := newWorld(t)
	w.seed("remote", kubeconfigOf("seed"))
	seed := w.client("seed")
	expect.Create(w.t, seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.catalogue}})
	foreign := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: "foreign"}, StringData: map[string]string{"keep": "me"},
	}
	expect.Create(w.t, seed, foreign)
	marked := map[string]string{v1.LabelUse: v1.UseSource}
	hosts := map[string]string{v1.AnnotationHosts: "git.example.com", v1.AnnotationUsedBy: "AddonCatalogue/custom"}
	for _, secret := range []*corev1.Secret{
		{ObjectMeta: metav1.ObjectMeta{Name: "login", Labels: marked, Annotations: hosts},
			StringData: map[string]string{"username": "u", "password": "p", "other": "x"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "unmarked", Annotations: hosts}, StringData: map[string]string{"username": "u"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "hostless", Labels: marked}, StringData: map[string]string{"username": "u"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "ca", Labels: marked}, StringData: map[string]string{"ca.crt": "c"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "foreign", Labels: marked, Annotations: hosts}, StringData: map[string]string{"username": "u"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "unnamed", Labels: marked, Annotations: hosts}, StringData: map[string]string{"username": "u"}},
	} {
		secret.Namespace = w.platform
		expect.Create(w.t, w.master, secret)
	}
	custom := w.catalogueOf("custom", map[string][]string{"vault": {"1.0.0", "1.1.0", "1.2.0"}})
	for i, names := range [][2]string{{"login", "ca"}, {"unmarked", "hostless"}, {"foreign", "missing"}} {
		git := custom.Spec.Addons[0].Versions[i].Source.Git
		git.SecretRef, git.CASecretRef = &v1.LocalReference{Name: names[0]}, &v1.LocalReference{Name: names[1]}
	}
	w.start()
	expect.Create(w.t, w.master, custom)
	w.expectVersions("seed", "vault", "1.2.0", "1.1.0", "1.0.0")
	object := expect.Object(t, w.master, custom, func(object *v1.AddonCatalogue) error {
		const inTheWay = `Secret "foreign": it exists on the seed and the master did not write it: delete or rename it there`
		if len(object.Status.Seeds) != 1 || object.Status.Seeds[0].Message != inTheWay {
			return fmt.Errorf("seeds %+v", object.Status.Seeds)
		}
		return expect.Condition(object, v1.ConditionReady, "False", v1.ReasonDistributing)
	})
	t.Log(object.Status.Conditions)
	w.expectSeedFigures("remote behind 1")
	want := map[string]map[string]string{
		"login": {"username": "u", "password": "p"}, "ca": {"ca.crt": "c"}, "foreign": {"keep": "me"},
	}
	if diff := cmp.Diff(want, w.secretsOn(seed)); diff != "" {
		t.Error(diff)
	}
	login := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: "login"}}
	expect.Object(t, seed, login, func(secret *corev1.Secret) error {
		if secret.Annotations[v1.AnnotationHosts] != "git.example.com" {
			return fmt.Errorf("annotations %v", secret.Annotations)
		}
		return nil
	})

	// A changed password follows; copies nobody names any more go, and nothing else does.
	expect.Change(w.t, w.master, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: "login"}}, func(secret *corev1.Secret) {
		secret.Data["password"] = []byte("new")
	})
	expect.Object(t, seed, login, func(secret *corev1.Secret) error {
		if string(secret.Data["password"]) != "new" {
			return fmt.Errorf("the old password")
		}
		return nil
	})
	expect.Change(w.t, w.master, custom, func(object *v1.AddonCatalogue) { object.Spec.Addons = []v1.Addon{addonOf("vault", "2.0.0")} })
	expect.Gone(t, seed, login)
	expect.Eventually(t, expect.Patience, func() error {
		if diff := cmp.Diff(map[string]map[string]string{"foreign": {"keep": "me"}}, w.secretsOn(seed)); diff != "" {
			return fmt.Errorf("secrets: %s", diff)
		}
		return nil
	})
}

func (w *world) secretsOn(seed client.Client) map[string]map[string]string {
	w.t.Helper()
	var list corev1.SecretList
	expect.List(w.t, seed, &list, client.InNamespace(w.catalogue))
	have := map[string]map[string]string{}
	for _, secret := range list.Items {
		have[secret.Name] = map[string]string{}
		for key, value := range secret.Data {
			have[secret.Name][key] = string(value)
		}
	}
	return have
}

func TestGuardsTheIdentityOfSeeds(t *testing.T) {
	w := newWorld(t)
	seed := w.seed("remote", kubeconfigOf("seed"))
	w.start()
	custom := w.catalogueOf("custom", map[string][]string{"istio": {"1.0.0"}})
	expect.Create(w.t, w.master, custom)
	w.expectVersions("seed", "istio", "1.0.0")

	// The same name leads to another cluster.
	expect.Change(w.t, w.master, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: "kubeconfig-remote"}}, func(secret *corev1.Secret) {
		secret.Data["kubeconfig"] = kubeconfigOf("master")
	})
	expect.Object(t, w.master, custom, func(object *v1.AddonCatalogue) error {
		if len(object.Status.Seeds) != 1 || object.Status.Seeds[0].Synced || object.Status.Seeds[0].Message == "" {
			return fmt.Errorf("seeds %+v", object.Status.Seeds)
		}
		return nil
	})
	expect.Change(w.t, w.master, custom, func(object *v1.AddonCatalogue) { object.Spec.Addons = []v1.Addon{addonOf("istio", "1.1.0")} })
	w.steady(func() error {
		if err := w.master.Get(t.Context(), client.ObjectKeyFromObject(w.merged("istio")), w.merged("istio")); err == nil {
			return fmt.Errorf("the other cluster was written to")
		}
		return nil
	})
	var system corev1.Namespace
	expect.Get(t, w.master, client.ObjectKey{Name: metav1.NamespaceSystem}, &system)
	expect.Change(w.t, w.master, seed, func(seed *kkpv1.Seed) {
		seed.Annotations = map[string]string{v1.Prefix + "confirm-seed": string(system.UID)}
	})
	w.expectVersions("master", "istio", "1.1.0")
}

func TestCountsInThePlatformNamespaceOnly(t *testing.T) {
	w := newWorld(t)
	w.seed("local", kubeconfigOf("master"))
	w.start()
	astray := w.catalogueOf("astray", map[string][]string{"lost": {"1.0.0"}})
	astray.Namespace = "default"
	expect.Create(w.t, w.master, astray)
	t.Cleanup(func() { _ = w.master.Delete(context.WithoutCancel(t.Context()), astray) })
	object := w.expectCondition(astray, v1.ConditionReady, "False", v1.ReasonWrongNamespace)
	if len(object.Status.Seeds) != 0 || object.Status.SyncedSeeds != 0 {
		t.Errorf("seeds of a catalogue that does not count: %+v", object.Status.Seeds)
	}
	expect.Delete(t, w.master, astray)
	set := given.Set("default", "astray", "lost")
	expect.Create(t, w.master, set)
	t.Cleanup(func() { _ = w.master.Delete(context.WithoutCancel(t.Context()), set) })
	expect.HasCondition(t, w.master, set, expect.Is(v1.ConditionReady, "False", v1.ReasonWrongNamespace))
	expect.Delete(t, w.master, set)
}

func TestUsesSeedsOnceTheyAreInitialised(t *testing.T) {
	w := newWorld(t)
	seed := w.seed("local", kubeconfigOf("master"))
	setCondition := func(state metav1.ConditionStatus) {
		before := seed.DeepCopy()
		seed.Status.Versions.Kubermatic = "v2.30.1-3-g2974df5"
		seed.Status.Conditions = map[string]kkpv1.SeedCondition{kkpv1.SeedConditionInitialized: {Status: state}}
		expect.PatchStatus(t, w.master, seed, client.MergeFrom(before))
	}
	setCondition(metav1.ConditionFalse)
	w.start(func(options *distributor.Options) { options.KKPVersion = "" })
	custom := w.catalogueOf("custom", map[string][]string{"cilium": {"1.0.0"}})
	expect.Create(w.t, w.master, custom)
	expect.Object(t, w.master, custom, func(object *v1.AddonCatalogue) error {
		if len(object.Status.Seeds) != 1 || object.Status.Seeds[0].Synced {
			return fmt.Errorf("seeds %+v", object.Status.Seeds)
		}
		return nil
	})
	setCondition(metav1.ConditionTrue)
	merged := w.expectVersions("master", "cilium", "1.0.0")
	if got := merged.Annotations[v1.AnnotationKKPVersion]; got != "v2.30.1-3-g2974df5" {
		t.Errorf("KKP version %q", got)
	}
}
