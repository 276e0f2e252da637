package distributor_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

// shadowOf is what an author of another catalogue offers under the name of an add-on of victim: with more priority, the same version with
// other content, and a newer one, which would take every range.
func (w *world) shadowOf(addon string) *v1.AddonCatalogue {
	shadow := w.catalogueOf("shadow", map[string][]string{addon: {"1.0.0", "1.0.1"}})
	shadow.Spec.Priority, shadow.Spec.Addons[0].Slot = 1000, v1.SlotCNI
	shadow.Spec.Addons[0].Versions[0].Source.Git.Remote = "https://git.example.com/leak.git"
	return shadow
}

// expectOwned waits until a seed has one version of an add-on, of that catalogue.
func (w *world) expectOwned(addon, version, owner string) {
	w.t.Helper()
	expect.Object(w.t, w.master, w.merged(addon), func(object *v1.AddonCatalogue) error { return isOwned(object, version, owner) })
}

func isOwned(object *v1.AddonCatalogue, version, owner string) error {
	origins, err := catalogue.ReadOrigins(object)
	if err != nil {
		return err
	}
	if len(origins) != 1 || origins[version].Catalogue != owner || object.Spec.Addons[0].Slot != "" {
		return fmt.Errorf("slot %q, versions of %v, want %s of %q", object.Spec.Addons[0].Slot, origins, version, owner)
	}
	return nil
}

func (w *world) ownersMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: v1.ConfigMapOwners}}
}

// expectOwners waits until this is stored of an add-on.
func (w *world) expectOwners(addon, owners string) *corev1.ConfigMap {
	w.t.Helper()
	return expect.Object(w.t, w.master, w.ownersMap(), func(kept *corev1.ConfigMap) error {
		if kept.Data[addon] != owners {
			return fmt.Errorf("%s belongs to %q, want %q", addon, kept.Data[addon], owners)
		}
		return nil
	})
}

// AC76: a catalogue of another author, with any priority, replaces and adds nothing of an add-on that is merged: not while the manager
// runs, and not after a restart. Red when Merge goes by rank alone, or when owners are not stored.
func TestAnAddonStaysWithTheCatalogueThatBroughtIt(t *testing.T) {
	w := newWorld(t)
	w.seed("local", kubeconfigOf("master"))
	now := kit.RunningClock(t)
	clocked := func(options *distributor.Options) { options.Clock = now }
	stop := w.start(clocked)
	victim := w.catalogueOf("victim", map[string][]string{"web": {"1.0.0"}})
	victim.Spec.Addons[0].DisplayName = "web" // as large as it will be
	expect.Create(w.t, w.master, victim)
	w.expectOwned("web", "1.0.0", "victim")
	w.expectOwners("web", "victim")
	shadow := w.shadowOf("web")
	expect.Create(w.t, w.master, shadow)
	shadow = w.expectCondition(shadow, v1.ConditionConflicting, "True", v1.ReasonOwnedByOther)
	conflicts := []v1.CatalogueConflict{{Addon: "web", WonBy: "victim", Reason: v1.ReasonOwnedByOther}}
	if diff := cmp.Diff(conflicts, shadow.Status.Conflicts); diff != "" {
		t.Error(diff)
	}
	w.expectCondition(victim, v1.ConditionConflicting, "False", v1.ReasonNoConflict)
	stays := func() error {
		merged := w.merged("web")
		if err := w.master.Get(t.Context(), client.ObjectKeyFromObject(merged), merged); err != nil {
			return err
		}
		return isOwned(merged, "1.0.0", "victim")
	}
	w.steady(stays)
	stop()

	// Nor after a restart, and nothing is written where nothing changed.
	kept := w.expectOwners("web", "victim")
	stop = w.start(clocked)
	expect.Change(w.t, w.master, victim, func(object *v1.AddonCatalogue) { object.Spec.Addons[0].DisplayName = "Web" })
	expect.Object(t, w.master, w.merged("web"), func(object *v1.AddonCatalogue) error {
		if object.Spec.Addons[0].DisplayName != "Web" {
			return fmt.Errorf("it is called %q", object.Spec.Addons[0].DisplayName)
		}
		return isOwned(object, "1.0.0", "victim")
	})
	w.steady(stays)
	if again := w.expectOwners("web", "victim"); again.ResourceVersion != kept.ResourceVersion {
		t.Error("owners are written again, where nothing changed")
	}
	stop()

	// Nor where what was stored is gone.
	expect.Delete(t, w.master, w.ownersMap())
	w.start(clocked)
	w.expectOwners("web", "victim")
	w.steady(stays)

	// It is missed while the manager runs, too: with the next change of a catalogue.
	expect.Delete(t, w.master, w.ownersMap())
	expect.Change(w.t, w.master, victim, func(object *v1.AddonCatalogue) {
		object.Spec.Addons = append(object.Spec.Addons, addonOf("db", "1.0.0"))
	})
	w.expectOwners("db", "victim")
	w.expectOwners("web", "victim")
	w.steady(stays)

	// Nor where it is replaced: for a while it is gone, and back with another UID.
	expect.Delete(t, w.master, victim)
	w.steady(func() error {
		kept := w.ownersMap()
		if err := w.master.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil {
			return err
		}
		if kept.Data["web"] != "victim" {
			return fmt.Errorf("web belongs to %q", kept.Data["web"])
		}
		return nil
	})
	victim = w.catalogueOf("victim", map[string][]string{"web": {"1.0.0"}})
	expect.Create(w.t, w.master, victim)
	w.expectOwned("web", "1.0.0", "victim")

	// What is restored while the manager runs counts, and is not overwritten.
	expect.Change(w.t, w.master, w.ownersMap(), func(kept *corev1.ConfigMap) { kept.Data = map[string]string{"web": "other victim", "old": "victim"} })
	expect.Change(w.t, w.master, victim, func(object *v1.AddonCatalogue) {
		object.Spec.Addons = append(object.Spec.Addons, addonOf("new", "1.0.0"))
	})
	kept = w.expectOwners("new", "victim")
	delete(kept.Data, "_room")
	want := map[string]string{"web": "other victim", "old": "victim", "new": "victim"}
	if diff := cmp.Diff(want, kept.Data); diff != "" {
		t.Error(diff)
	}

	// The owners give it up.
	expect.Change(w.t, w.master, victim, func(object *v1.AddonCatalogue) { object.Spec.Addons = object.Spec.Addons[1:] })
	w.steady(func() error { return w.master.Get(t.Context(), client.ObjectKeyFromObject(kept), kept) })
	now.Step(10 * time.Minute)
	expect.Change(w.t, w.master, shadow, func(object *v1.AddonCatalogue) { object.Spec.Addons[0].DisplayName = "looked at" })
	w.expectVersions("master", "web", "1.0.1", "1.0.0")
	w.expectOwners("web", "shadow")
	w.expectCondition(shadow, v1.ConditionConflicting, "False", v1.ReasonNoConflict)
}

// Red when a catalogue with annotation take-over does not add and replace, when what it lacks goes, when it is no owner once the annotation
// is off, or when the one of before is not the owner again after it.
func TestACatalogueTakesAnAddonOver(t *testing.T) {
	w := newWorld(t)
	w.seed("local", kubeconfigOf("master"))
	now := kit.RunningClock(t)
	w.start(func(options *distributor.Options) { options.Clock = now })
	victim := w.catalogueOf("victim", map[string][]string{"web": {"1.0.0", "0.9.0"}})
	expect.Create(w.t, w.master, victim)
	w.expectOwners("web", "victim")
	next := w.shadowOf("web")
	next.Spec.Priority = 0
	expect.Create(w.t, w.master, next)
	w.expectCondition(next, v1.ConditionConflicting, "True", v1.ReasonOwnedByOther)
	expect.Change(w.t, w.master, next, func(object *v1.AddonCatalogue) {
		metav1.SetMetaDataAnnotation(&object.ObjectMeta, v1.AnnotationTakeOver, "other, web")
	})
	merged := w.expectVersions("master", "web", "1.0.1", "1.0.0", "0.9.0")
	if remote := merged.Spec.Addons[0].Versions[1].Source.Git.Remote; remote != "https://git.example.com/leak.git" {
		t.Errorf("version 1.0.0 is from %s", remote)
	}
	w.expectOwners("web", "shadow victim")
	w.expectCondition(victim, v1.ConditionConflicting, "True", v1.ReasonDuplicate)

	expect.Change(w.t, w.master, next, func(object *v1.AddonCatalogue) { object.Annotations = nil })
	w.steady(func() error {
		kept := w.ownersMap()
		if err := w.master.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil {
			return err
		}
		if kept.Data["web"] != "shadow victim" {
			return fmt.Errorf("web belongs to %q", kept.Data["web"])
		}
		return nil
	})
	expect.Delete(t, w.master, next)
	w.expectVersions("master", "web", "1.0.0", "0.9.0")
	now.Step(10 * time.Minute)
	expect.Change(w.t, w.master, victim, func(object *v1.AddonCatalogue) { object.Spec.Addons[0].DisplayName = "looked at" })
	w.expectOwners("web", "victim")
}

// At the upgrade nobody owns anything: what was merged stays as it is, and its catalogues become the owners. Red when a version goes.
func TestAtTheUpgradeWhoWinsIsTheOwner(t *testing.T) {
	w := newWorld(t)
	w.seed("local", kubeconfigOf("master"))
	for _, object := range []*v1.AddonCatalogue{
		w.catalogueOf("first", map[string][]string{"web": {"1.0.0"}}), w.catalogueOf("second", map[string][]string{"web": {"1.1.0"}}),
		w.catalogueOf("third", map[string][]string{"web": {"1.1.0"}}),
	} {
		if object.Name == "first" { // before the policy was there
			object.Annotations = map[string]string{v1.AnnotationTakeOver: "web"}
		}
		object.Spec.Priority = map[string]int32{"second": 7, "third": 3}[object.Name]
		expect.Create(w.t, w.master, object)
	}
	stop := w.start()
	w.expectVersions("master", "web", "1.1.0", "1.0.0")
	w.expectOwners("web", "second first")
	stop()
	w.start()
	late := w.shadowOf("web")
	expect.Create(w.t, w.master, late)
	w.expectCondition(late, v1.ConditionConflicting, "True", v1.ReasonOwnedByOther)
	w.expectVersions("master", "web", "1.1.0", "1.0.0")
	w.expectOwners("web", "second first")
}

// A restore brings objects one by one, with other UIDs. Red when a catalogue that comes back later than others has lost its add-ons, or
// when one that does not come back keeps them for ever.
func TestOwnersSurviveARestore(t *testing.T) {
	w := newWorld(t)
	w.seed("local", kubeconfigOf("master"))
	kept := w.ownersMap()
	kept.Data = map[string]string{"web": "victim", "db": "lost"}
	expect.Create(w.t, w.master, kept)
	shadow := w.shadowOf("web")
	shadow.Spec.Addons = append(shadow.Spec.Addons, addonOf("db", "1.0.0"))
	expect.Create(w.t, w.master, shadow)
	now := kit.RunningClock(t)
	w.start(func(options *distributor.Options) { options.Clock = now })
	expect.Object(t, w.master, shadow, func(object *v1.AddonCatalogue) error {
		if object.Status.ConflictCount != 2 {
			return fmt.Errorf("conflicts %v", object.Status.Conflicts)
		}
		return nil
	})
	victim := w.catalogueOf("victim", map[string][]string{"web": {"1.0.0"}})
	expect.Create(w.t, w.master, victim)
	w.expectOwned("web", "1.0.0", "victim")
	w.expectOwners("db", "lost")

	now.Step(10 * time.Minute)
	expect.Change(w.t, w.master, shadow, func(object *v1.AddonCatalogue) { object.Spec.Addons[1].DisplayName = "looked at" })
	w.expectVersions("master", "db", "1.0.0")
	w.expectOwners("db", "shadow")
	w.expectOwned("web", "1.0.0", "victim")
}

// A catalogue that can't be read gives nothing up, one in git while its repository was not read, and what it generated has no annotation
// of its own that counts.
func TestWhatCantBeReadGivesNothingUp(t *testing.T) {
	w := newWorld(t)
	w.seed("local", kubeconfigOf("master"))
	kept := w.ownersMap()
	kept.Data = map[string]string{"web": "team", "db": "wrong"}
	expect.Create(w.t, w.master, kept)
	team := w.catalogueOf("team", nil)
	team.Spec.Git = &v1.CatalogueGit{Remote: "https://git.example.com/team.git"}
	expect.Create(w.t, w.master, team)
	expect.Create(w.t, w.master, w.catalogueOf("wrong", map[string][]string{"db": {"1.0.0", "v1.0.0"}}))
	shadow := w.shadowOf("web")
	shadow.Spec.Addons = append(shadow.Spec.Addons, addonOf("db", "1.0.0"))
	expect.Create(w.t, w.master, shadow)
	now := kit.RunningClock(t)
	w.start(func(options *distributor.Options) { options.Clock = now })
	leftOut := func() error {
		if err := w.master.Get(t.Context(), client.ObjectKeyFromObject(shadow), shadow); err != nil {
			return err
		}
		isOther := func(one v1.CatalogueConflict) bool { return one.Reason == v1.ReasonOwnedByOther }
		if len(shadow.Status.Conflicts) != 2 || !slices.ContainsFunc(shadow.Status.Conflicts, isOther) {
			return fmt.Errorf("conflicts %v", shadow.Status.Conflicts)
		}
		now := w.ownersMap()
		if err := w.master.Get(t.Context(), client.ObjectKeyFromObject(now), now); err != nil {
			return err
		}
		delete(now.Data, "_room")
		if diff := cmp.Diff(kept.Data, now.Data); diff != "" {
			return errors.New(diff)
		}
		return nil
	}
	expect.Eventually(t, expect.Patience, leftOut)
	now.Step(time.Hour)
	w.steady(leftOut)

	// An add-on that was generated from it is the owner's, and takes nothing over by itself.
	child := w.catalogueOf("team-web-0", map[string][]string{"web": {"1.0.0"}, "db": {"2.0.0"}})
	child.Labels = map[string]string{v1.LabelRole: v1.RoleGenerated}
	child.Annotations = map[string]string{v1.AnnotationTakeOver: "db"}
	child.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1.GroupVersion.String(), Kind: "AddonCatalogue", Name: team.Name, UID: team.UID, Controller: new(true),
	}}
	expect.Create(w.t, w.master, child)
	w.expectOwned("web", "1.0.0", "team-web-0")
	child = w.expectCondition(child, v1.ConditionConflicting, "True", v1.ReasonOwnedByOther)
	message := child.Status.Conditions[slices.IndexFunc(child.Status.Conditions,
		func(one metav1.Condition) bool { return one.Type == v1.ConditionConflicting })].Message
	if !strings.Contains(message, `take-over=db on "team"`) {
		t.Error(message)
	}
	expect.Change(w.t, w.master, team, func(object *v1.AddonCatalogue) {
		metav1.SetMetaDataAnnotation(&object.ObjectMeta, v1.AnnotationTakeOver, "db")
	})
	w.expectVersions("master", "db", "2.0.0")
	w.expectOwners("db", "team wrong")
}

// Red when seeds get an add-on before its owner is kept: after a crash in between, another catalogue could have it.
func TestNothingReachesSeedsBeforeItsOwnerIsKept(t *testing.T) {
	w := newWorld(t)
	w.seed("local", kubeconfigOf("master"))
	stuck := w.ownersMap()
	stuck.Immutable = new(true)
	expect.Create(w.t, w.master, stuck)
	first := w.catalogueOf("first", map[string][]string{"web": {"1.0.0"}})
	expect.Create(w.t, w.master, first)
	w.start()
	w.steady(func() error {
		err := w.master.Get(t.Context(), client.ObjectKeyFromObject(w.merged("web")), w.merged("web"))
		if err == nil {
			return errors.New("the seed has it")
		}
		return client.IgnoreNotFound(err)
	})
	expect.Delete(t, w.master, stuck)
	expect.Change(w.t, w.master, first, func(object *v1.AddonCatalogue) { object.Spec.Addons[0].DisplayName = "Web" })
	w.expectOwned("web", "1.0.0", "first")
	w.expectOwners("web", "first")
}

// Red when a catalogue in git gives an add-on up while what is generated from it is incomplete, as after a restore, or when nobody sees that
// its content is known.
func TestARepositoryGivesUpWhatItIsKnownToLack(t *testing.T) {
	w := newWorld(t)
	w.seed("local", kubeconfigOf("master"))
	kept := w.ownersMap()
	kept.Data = map[string]string{"web": "team"}
	expect.Create(w.t, w.master, kept)
	team := w.catalogueOf("team", nil)
	team.Spec.Git = &v1.CatalogueGit{Remote: "https://git.example.com/team.git"}
	expect.Create(w.t, w.master, team)
	generated := func(addons int32) {
		t.Helper()
		expect.ChangeStatus(t, w.master, team, func(team *v1.AddonCatalogue) {
			team.Status.Addons = addons
			conditions.True(&team.Status.Conditions, team.Generation, v1.ConditionFetched, v1.ReasonFetched, "as tested")
		})
	}
	generated(1) // and none is there
	shadow := w.shadowOf("web")
	expect.Create(w.t, w.master, shadow)
	now := kit.RunningClock(t)
	w.start(func(options *distributor.Options) { options.Clock = now })
	w.expectCondition(shadow, v1.ConditionConflicting, "True", v1.ReasonOwnedByOther)
	w.steady(func() error {
		if err := w.master.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil {
			return err
		}
		if kept.Data["web"] != "team" {
			return fmt.Errorf("web belongs to %q", kept.Data["web"])
		}
		return nil
	})
	now.Step(time.Hour)
	generated(0)
	w.steady(func() error { return w.master.Get(t.Context(), client.ObjectKeyFromObject(kept), kept) })
	now.Step(10 * time.Minute)
	expect.Change(w.t, w.master, shadow, func(object *v1.AddonCatalogue) { object.Spec.Addons[0].DisplayName = "looked at" })
	w.expectOwners("web", "shadow")
}

// Red when an API server refuses the owners of as many add-ons as there may be: nothing would reach any seed again.
func TestAnAPIServerTakesAllOwners(t *testing.T) {
	w := newWorld(t)
	for name, length := range map[string]int{"long": 63, "short": 6} {
		owners := catalogue.Owners{}
		for i := range catalogue.OwnersLimit / (2*length + len("f") + 16) {
			owners[fmt.Sprintf("x%0*d", length-1, i)] = []string{"f"}
		}
		kept := w.ownersMap()
		kept.Name, kept.Data = name, owners.Encode()
		kept.Data["_ignored"] = strings.Repeat("0123456789ab ", 10_000)
		kept.Data["_former"] = strings.Repeat("web victim 0123456789abcdef\n", 256<<10/28)
		kept.Data["_room"] = strings.Repeat("0123456789abcdef 128 123456\n", 96<<10/28)
		expect.Create(w.t, w.master, kept)
		for addon := range owners {
			kept.Data[addon] = "g"
		}
		if err := client.WithFieldOwner(w.master, "another").Update(t.Context(), kept); err != nil {
			t.Error(err)
		}
	}
}

// Red when a former owner's new version reaches seeds, while the manager runs or after a restart.
func TestAPreviousOwnerAddsNothingOverARestart(t *testing.T) {
	w := newWorld(t)
	w.seed("local", kubeconfigOf("master"))
	stop := w.start()
	victim := w.catalogueOf("victim", map[string][]string{"web": {"1.0.0"}})
	expect.Create(w.t, w.master, victim)
	w.expectOwners("web", "victim")
	next := w.catalogueOf("next", map[string][]string{"web": {"1.1.0"}})
	next.Annotations = map[string]string{v1.AnnotationTakeOver: "web"}
	expect.Create(w.t, w.master, next)
	w.expectVersions("master", "web", "1.1.0", "1.0.0")
	add := func(version string) {
		t.Helper()
		expect.Change(w.t, w.master, victim, func(object *v1.AddonCatalogue) {
			object.Spec.Addons[0].Versions = append(object.Spec.Addons[0].Versions, addonOf("web", version).Versions...)
		})
	}
	add("9.0.0")
	w.expectCondition(victim, v1.ConditionConflicting, "True", v1.ReasonOwnedByOther)
	w.expectVersions("master", "web", "1.1.0", "1.0.0")
	stop()
	add("9.1.0")
	w.start()
	expect.Object(t, w.master, victim, func(object *v1.AddonCatalogue) error {
		if object.Status.ConflictCount != 2 {
			return fmt.Errorf("conflicts %v", object.Status.Conflicts)
		}
		return nil
	})
	w.expectVersions("master", "web", "1.1.0", "1.0.0")
}
