package distributor_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// usedBy has a Secret name its users; none: it has no annotation.
func (w *world) usedBy(secret *corev1.Secret, users ...string) {
	w.t.Helper()
	expect.Change(w.t, w.master, secret, func(secret *corev1.Secret) {
		delete(secret.Annotations, v1.AnnotationUsedBy)
		if len(users) > 0 {
			metav1.SetMetaDataAnnotation(&secret.ObjectMeta, v1.AnnotationUsedBy, strings.Join(users, ","))
		}
	})
}

// upgraded has the master be one whose earlier release wrote identities of seeds.
func (w *world) upgraded() {
	w.t.Helper()
	expect.Create(w.t, w.master, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: v1.ConfigMapSeeds}, Data: map[string]string{"earlier": "uid"},
	})
}

// sourceLogin is a Secret for sources that names no users.
func (w *world) sourceLogin(name string) *corev1.Secret {
	w.t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.platform, Name: name, Labels: map[string]string{v1.LabelUse: v1.UseSource},
			Annotations: map[string]string{v1.AnnotationHosts: "git.example.com"},
		},
		Data: map[string][]byte{"username": []byte("robot"), "password": []byte("S3CRET")},
	}
	expect.Create(w.t, w.master, secret)
	return secret
}

// naming is a set whose item names a Secret.
func (w *world) naming(name, secret string) *v1.AddonSet {
	set := w.setOf(name)
	set.Spec.Addons[0].PlatformSecretRef = &v1.PlatformSecretReference{Name: secret}
	return set
}

func (w *world) expectSetSays(set *v1.AddonSet, status, reason string, words ...string) {
	w.t.Helper()
	expect.HasCondition(w.t, w.master, set.DeepCopy(), expect.Is(v1.ConditionReady, status, reason, words...))
}

// expectNothingOf fails the test where a seed has a set, or its Secret.
func (w *world) expectNothingOf(set *v1.AddonSet, secret string) {
	w.t.Helper()
	w.steady(func() error {
		for _, cluster := range places {
			copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: secret}}
			for _, object := range []client.Object{w.copyOf(set), copied} {
				if err := w.client(cluster).Get(w.t.Context(), client.ObjectKeyFromObject(object), object); client.IgnoreNotFound(err) != nil || err == nil {
					return fmt.Errorf("%T %q is on %s: %w", object, object.GetName(), cluster, err)
				}
			}
		}
		return nil
	})
}

// F7: An author who can't read Secrets names one of the platform's in a set of his own. Red when seeds get the set or the Secret although
// the Secret does not name the set, when the refusal does not say what to do, when a set that it names does not get it, or
// when a seed goes on with a Secret that its only user lost.
func TestASetGetsNoSecretThatDoesNotNameIt(t *testing.T) {
	w := newWorld(t)
	w.twoSeeds()
	w.start()
	secret := w.platformSecret("monitoring-values", "password: S3CRET")
	w.usedBy(secret)
	leak := w.naming("leak", secret.Name)
	expect.Create(w.t, w.master, leak)
	w.expectSetSays(leak, "False", v1.ReasonSecretNotAllowed,
		`Secret "monitoring-values" may not be used by AddonSet/leak`, "annotate the Secret with "+v1.AnnotationUsedBy+"=AddonSet/leak")
	w.expectNothingOf(leak, secret.Name)
	w.usedBy(secret, "AddonSet/monitoring", "AddonCatalogue/leak")
	w.expectSetSays(leak, "False", v1.ReasonSecretNotAllowed, " to its annotation "+v1.AnnotationUsedBy)
	w.expectNothingOf(leak, secret.Name)

	// The one that it names has it, and the other one's copies are not what brings it.
	monitoring := w.naming("monitoring", secret.Name)
	expect.Create(w.t, w.master, monitoring)
	w.expectCopy("south", monitoring, carriedBy(monitoring))
	w.expectUsedBy(secret.Name, "AddonSet/monitoring")
	w.usedBy(secret, "AddonSet/monitoring", "AddonSet/leak")
	w.expectCopy("south", leak, carriedBy(leak))
	w.expectUsedBy(secret.Name, "AddonSet/leak,AddonSet/monitoring")

	// What it loses it has no further content of: its copy stays, and is not among those that the seed grants the Secret.
	w.usedBy(secret, "AddonSet/monitoring")
	w.expectSetSays(leak, "False", v1.ReasonSecretNotAllowed, "the seeds keep the last valid copy")
	w.expectUsedBy(secret.Name, "AddonSet/monitoring")
	w.expectCopy("south", leak, carriedBy(leak))

	// Where none is left, no seed has the content any more, though copies of sets that name it stay.
	w.usedBy(secret, "AddonSet/another")
	w.expectSetSays(monitoring, "False", v1.ReasonSecretNotAllowed, "the seeds keep the last valid copy")
	for _, cluster := range places {
		expect.Gone(t, w.client(cluster), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: secret.Name}})
	}
	w.expectCopy("south", monitoring, carriedBy(monitoring))
}

func (w *world) expectUsedBy(secret, want string) {
	w.t.Helper()
	copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: secret}}
	expect.Object(w.t, w.client("seed"), copied, func(found *corev1.Secret) error {
		if got, annotated := found.Annotations[v1.AnnotationUsedBy]; !annotated || got != want {
			return fmt.Errorf("it is for %q, want %q", got, want)
		}
		return nil
	})
}

// F7: A set that names a Secret before there is one. Red when the set has it once it is there, since its copy is on the seeds already.
func TestASecretThatComesLaterIsForThoseThatItNames(t *testing.T) {
	w := newWorld(t)
	w.twoSeeds()
	w.start()
	leak, monitoring := w.naming("leak", "later"), w.naming("monitoring", "later")
	expect.Create(w.t, w.master, leak)
	expect.Create(w.t, w.master, monitoring)
	w.expectCopy("south", leak, carriedBy(leak))
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.platform, Name: "later", Labels: map[string]string{v1.LabelUse: v1.UseValues},
			Annotations: map[string]string{v1.AnnotationUsedBy: "AddonSet/monitoring"},
		},
		Data: map[string][]byte{"values.yaml": []byte("password: S3CRET")},
	}
	expect.Create(w.t, w.master, secret)
	w.expectUsedBy("later", "AddonSet/monitoring")
	w.expectSetSays(leak, "False", v1.ReasonSecretNotAllowed, "AddonSet/leak")
}

// F7: The same with the login of a repository. Red when a version that needs a Secret which is not for its catalogue is on a seed, when
// it holds up others, when a Core catalogue needs the annotation, or when an authority does.
func TestACatalogueGetsNoLoginThatDoesNotNameIt(t *testing.T) {
	w := newWorld(t)
	w.seed("remote", kubeconfigOf("seed"))
	w.start()
	secret := w.sourceLogin("login")
	of := func(name string, kind v1.CatalogueType, addon string) *v1.AddonCatalogue {
		object := w.catalogueOf(name, map[string][]string{addon: {"1.0.0", "1.1.0"}})
		object.Spec.Type = kind
		object.Spec.Addons[0].Versions[1].Source.Git.SecretRef = &v1.LocalReference{Name: secret.Name}
		object.Spec.Addons[0].Versions[0].Source.Git.CASecretRef = &v1.LocalReference{Name: secret.Name}
		return object
	}
	thief := of("thief", v1.CatalogueCustom, "spoils")
	expect.Create(w.t, w.master, thief)
	w.expectVersions("seed", "spoils", "1.0.0")
	says := func(of *v1.AddonCatalogue, status, reason string, words ...string) {
		t.Helper()
		expect.HasCondition(t, w.master, of.DeepCopy(), expect.Is(v1.ConditionReady, status, reason, words...))
	}
	says(thief, "False", v1.ReasonSecretNotAllowed, "annotate the Secret with "+v1.AnnotationUsedBy+"=AddonCatalogue/thief", "left out")
	w.expectCondition(thief, v1.ConditionSourcesReady, "False", v1.ReasonSecretNotAllowed)

	core, payments := of("core", v1.CatalogueCore, "network"), of("payments", v1.CatalogueCustom, "ledger")
	expect.Create(w.t, w.master, core)
	w.expectVersions("seed", "network", "1.1.0", "1.0.0")
	w.usedBy(secret, "AddonCatalogue/core", "AddonCatalogue/payments")
	expect.Create(w.t, w.master, payments)
	w.expectVersions("seed", "ledger", "1.1.0", "1.0.0")
	says(payments, "True", v1.ReasonDistributed)
	says(thief, "False", v1.ReasonSecretNotAllowed, " to its annotation ")
	w.steady(func() error {
		var found v1.AddonCatalogue
		if err := w.client("seed").Get(t.Context(), client.ObjectKeyFromObject(w.merged("spoils")), &found); err != nil || len(found.Spec.Addons[0].Versions) != 1 {
			return fmt.Errorf("%d versions: %w", len(found.Spec.Addons[0].Versions), err)
		}
		return nil
	})
	w.usedBy(secret, "*")
	w.expectVersions("seed", "spoils", "1.1.0", "1.0.0")
	says(thief, "True", v1.ReasonDistributed)
}

// F7: Who used a Secret at the upgrade goes on, and is warned. Red when that stops, is not told, is forgotten by a restart, or is had by who
// never could use it, or comes later: by a set that is made again under the name too, or once the notes are lost.
func TestPreviousUsersOfSecretsGoOn(t *testing.T) {
	w := newWorld(t)
	w.twoSeeds()
	w.upgraded()
	secret := w.platformSecret("shared", "a: 1")
	w.usedBy(secret)
	w.sourceLogin("login")
	monitoring := w.naming("monitoring", secret.Name)
	expect.Create(w.t, w.master, monitoring)
	custom := w.catalogueOf("private", map[string][]string{"vault": {"1.0.0"}})
	custom.Spec.Addons[0].Versions[0].Source.Git.SecretRef = &v1.LocalReference{Name: "login"}
	expect.Create(w.t, w.master, custom)
	// One that is invalid goes on once it is mended; a set that never had the Secret, or is invalid, does not.
	broken := w.catalogueOf("broken", map[string][]string{"odd": {"1.0.0", "v1.0"}})
	broken.Spec.Addons[0].Versions[0].Source.Git.SecretRef = &v1.LocalReference{Name: "login"}
	expect.Create(w.t, w.master, broken)
	unfit := w.naming("unfit", secret.Name)
	unfit.Spec.Addons[0].DependsOn = []v1.AddonName{"frontend"}
	expect.Create(w.t, w.master, unfit)
	expect.Create(w.t, w.master, w.naming("guess", "login"))
	stop := w.start()
	goesOn := func() {
		t.Helper()
		w.expectCopy("south", monitoring, carriedBy(monitoring))
		w.expectUsedBy(secret.Name, "AddonSet/monitoring")
		w.expectVersions("seed", "vault", "1.0.0")
		for seed := range places {
			w.seedSays(seed, monitoring, "r1", done(1), done(1))
		}
		w.expectSetSays(monitoring, "True", v1.ReasonComplete, `annotate the Secret with `+v1.AnnotationUsedBy+"=AddonSet/monitoring")
		expect.HasCondition(t, w.master, custom.DeepCopy(), expect.Is(v1.ConditionReady, "True", v1.ReasonDistributed, v1.AnnotationUsedBy+"=AddonCatalogue/private"))
	}
	goesOn()
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: v1.ConfigMapSeeds}}
	expect.Read(t, w.master, kept)
	for user, noted := range map[string]bool{
		"AddonCatalogue/private": true, "AddonCatalogue/broken": true, "AddonSet/monitoring": true, "AddonSet/unfit": false, "AddonSet/guess": false,
	} {
		if strings.Contains(kept.Data[v1.PreviousSecretUsers], " "+user+" ") != noted {
			t.Errorf("%s is noted %t: %s", user, !noted, kept.Data[v1.PreviousSecretUsers])
		}
	}
	late := w.naming("late", secret.Name)
	expect.Create(w.t, w.master, late)
	w.expectSetSays(late, "False", v1.ReasonSecretNotAllowed, "AddonSet/late")
	stop()
	expect.Change(w.t, w.master, secret, func(secret *corev1.Secret) { secret.Data["values.yaml"] = []byte("a: 2") })
	stop = w.start()
	expect.Object(t, w.client("seed"), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: secret.Name}},
		func(found *corev1.Secret) error {
			if got := string(found.Data["values.yaml"]); got != "a: 2" {
				return fmt.Errorf("content %q", got)
			}
			return nil
		})
	goesOn()
	w.expectSetSays(late, "False", v1.ReasonSecretNotAllowed, "AddonSet/late")

	// Deleted with the controller stopped, by which nothing of the copy is cleaned up, and made again.
	stop()
	expect.Change(w.t, w.master, monitoring, func(set *v1.AddonSet) { set.Finalizers = nil })
	expect.Delete(t, w.master, monitoring)
	again := w.naming("monitoring", secret.Name)
	expect.Create(w.t, w.master, again)
	stop = w.start()
	w.expectSetSays(again, "False", v1.ReasonSecretNotAllowed, "AddonSet/monitoring")

	stop()
	expect.Delete(t, w.master, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: v1.ConfigMapSeeds}})
	w.start()
	expect.HasCondition(t, w.master, custom.DeepCopy(), expect.Is(v1.ConditionReady, "False", v1.ReasonSecretNotAllowed, "AddonCatalogue/private"))
	w.expectSetSays(again, "False", v1.ReasonSecretNotAllowed, "AddonSet/monitoring")
}

// Red when the ConfigMap with the notes, lost while the controller runs, is written again by a seed's worker without them: the next start
// would take all present users for former ones.
func TestNotesThatAreLostMakeNoPreviousUsers(t *testing.T) {
	w := newWorld(t)
	w.twoSeeds()
	secret := w.platformSecret("shared", "a: 1")
	w.usedBy(secret)
	leak := w.naming("leak", secret.Name)
	expect.Create(w.t, w.master, leak)
	stop := w.start()
	w.expectSetSays(leak, "False", v1.ReasonSecretNotAllowed, "AddonSet/leak")
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: v1.ConfigMapSeeds}}
	named := func(seed string) func(*corev1.ConfigMap) error {
		return func(found *corev1.ConfigMap) error {
			if found.Data[seed] == "" {
				return fmt.Errorf("seeds %v", found.Data)
			}
			return nil
		}
	}
	expect.Object(t, w.master, kept, named("south"))
	expect.Delete(t, w.master, kept.DeepCopy())
	w.seed("east", kubeconfigOf("seed")) // a new worker keeps its identity
	expect.Object(t, w.master, kept, named("east"))
	stop()
	editSet(w, leak, func(set *v1.AddonSet) { set.Spec.Priority = 3 }) // what is said of it is by the next process
	w.start()
	w.expectSetSays(leak, "False", v1.ReasonSecretNotAllowed, "AddonSet/leak")
	w.expectNothingOf(leak, secret.Name)
}
