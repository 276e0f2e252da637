package distributor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

func offering(t *testing.T, name string, addons ...string) *reading {
	t.Helper()
	object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	for _, addon := range addons {
		object.Spec.Addons = append(object.Spec.Addons, v1.Addon{Name: v1.AddonName(addon), Versions: []v1.AddonVersion{
			{Version: "1.0.0", Template: &v1.Template{Method: v1.MethodGoTemplate}, Source: &v1.Source{Git: &v1.GitSource{
				Remote: "https://git.example.com/a.git", Path: "a",
			}}},
		}})
	}
	source, err := catalogue.Read(object)
	if err != nil {
		t.Fatal(err)
	}
	return &reading{object: object, source: source, offered: source}
}

func owning(stored catalogue.Owners, adopt bool) (*Reconciler, *clocktesting.FakeClock, *events.FakeRecorder) {
	now, recorder := clocktesting.NewFakeClock(time.Now()), events.NewFakeRecorder(9)
	r := &Reconciler{options: Options{Clock: now}, recorder: recorder}
	r.owners = owners{stored: stored, adopt: adopt}
	return r, now, recorder
}

// owned is what a pass over some catalogues finds.
func (r *Reconciler) owned(t *testing.T, readings ...*reading) *facts {
	t.Helper()
	f := &facts{readings: readings}
	if outcome := r.own(t.Context(), f); outcome != nil {
		t.Fatal(outcome)
	}
	return f
}

// Red when an owner gives an add-on up at once, when the time counts from anything but its loss, or when no pass follows at its end.
func TestWhatAnOwnerLacksForAShortWhileStaysItsOwn(t *testing.T) {
	t.Parallel()
	r, now, _ := owning(catalogue.Owners{"web": {"victim"}, "db": {"victim", "second"}}, false)
	whole, second := offering(t, "victim", "web", "db"), offering(t, "second", "db")
	expect := func(f *facts, web, db bool, recheck time.Duration) {
		t.Helper()
		missing := f.claims.Missing["victim"]
		if missing["web"] != web || missing["db"] != db || f.recheck != recheck || len(f.claims.Missing["second"]) > 0 {
			t.Errorf("missing %v, next pass in %s", f.claims.Missing, f.recheck)
		}
	}
	expect(r.owned(t, whole, second), false, false, 0)
	now.Step(time.Hour)
	expect(r.owned(t, offering(t, "victim", "db"), second), true, false, returnsWithin)
	now.Step(4 * time.Minute)
	expect(r.owned(t, second), true, true, 6*time.Minute)
	now.Step(6 * time.Minute)
	expect(r.owned(t, second), false, true, 4*time.Minute)
	expect(r.owned(t, whole, second), false, false, 0)
	now.Step(time.Hour)
	expect(r.owned(t, second), true, true, returnsWithin)
}

// Red when an annotation that was there before the policy counts: at the upgrade, afterwards, or after a restart; when nobody is told, or
// when it does not count once it changed.
func TestAnAnnotationOfBeforeTheUpgradeDoesNotCount(t *testing.T) {
	t.Parallel()
	r, _, recorder := owning(catalogue.Owners{}, true)
	early := offering(t, "early", "web")
	annotate := func(object *v1.AddonCatalogue, value string) {
		object.Annotations = map[string]string{v1.AnnotationTakeOver: value}
	}
	annotate(early.object, "web")
	if taken := r.owned(t, early).claims.TakeOver; len(taken) > 0 {
		t.Errorf("at the upgrade: %v", taken)
	}
	select {
	case reported := <-recorder.Events:
		if !strings.Contains(reported, v1.EventTakeOverIgnored) {
			t.Error(reported)
		}
	default:
		t.Error("nobody is told")
	}
	r.owners.adopt = false
	late := offering(t, "late", "web")
	annotate(late.object, "web")
	taken := r.owned(t, early, late).claims.TakeOver
	if len(taken) != 1 || !taken["late"]["web"] {
		t.Errorf("afterwards: %v", taken)
	}
	stub := &reading{object: &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Name: "early", UID: "early"}}, reason: v1.ReasonTooLarge}
	stub.object.Annotations = map[string]string{v1.AnnotationStub: "1"}
	r.owned(t, stub, late) // which may lack a long annotation
	if taken := r.owned(t, early, late).claims.TakeOver; len(taken) != 1 {
		t.Errorf("after the manager had no room for it: %v", taken)
	}
	if f := r.owned(t, stub, late); !f.claims.Held["early"] {
		t.Error("the content of a catalogue counts as known while there is no room for it")
	}
	r.owned(t, early, late)
	r.owners.unkept = false
	annotate(early.object, "web,")
	if taken := r.owned(t, early, late).claims.TakeOver; !taken["early"]["web"] || !r.owners.unkept {
		t.Errorf("changed: %v; it is stored: %t", taken, r.owners.unkept)
	}
	annotate(early.object, "web")
	if taken := r.owned(t, early, late).claims.TakeOver; !taken["early"]["web"] {
		t.Errorf("set again: %v", taken)
	}
}

// A status lists fifty conflicts. Red when an add-on of another owner is not counted since it was cut off, or one of its own since others were.
func TestWhatWasCutOffAListWasLeftOut(t *testing.T) {
	t.Parallel()
	object := offering(t, "shadow", "web", "db").object
	object.Status.ConflictCount = 3
	object.Status.Conflicts = []v1.CatalogueConflict{{Addon: "web", Reason: v1.ReasonOwnedByOther}, {Addon: "db", Reason: v1.ReasonDuplicate}}
	for reason, want := range map[string]int{v1.ReasonDuplicate: 1, v1.ReasonOwnedByOther: 2} {
		leftOut := map[string]bool{}
		object.Status.Conflicts[1].Reason = reason
		if addLeftOut(leftOut, object); len(leftOut) != want {
			t.Errorf("%s: %v", reason, leftOut)
		}
	}
}

// unread is an API server that does not answer.
type unread struct{ client.Reader }

func (unread) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("no answer")
}

// Red when what a merge decided at the upgrade is decided again since it could not be written, or is not written later.
func TestWhatCantBeWrittenIsDecidedOnce(t *testing.T) {
	t.Parallel()
	r, _, _ := owning(catalogue.Owners{}, true)
	r.direct = unread{}
	f := &facts{isNewMerge: true, merged: catalogue.Merged{Owners: catalogue.Owners{"web": {"victim"}}}}
	if !r.keepOwners(t.Context(), f).Is(loop.RetryAt) {
		t.Error("the pass goes on")
	}
	claims := r.owned(t, offering(t, "victim", "web")).claims
	if claims.Adopt || len(claims.Owners["web"]) != 1 || !r.owners.unkept {
		t.Errorf("found again: %t; owners %v; to be written: %t", claims.Adopt, claims.Owners, r.owners.unkept)
	}
}

// Red when an owner loses an add-on while the edit that brings it back waits for its pace.
func TestAnOwnerWhoseEditWaitsGivesNothingUp(t *testing.T) {
	t.Parallel()
	r, now, _ := owning(catalogue.Owners{"web": {"victim"}}, false)
	slip := offering(t, "victim", "db")
	r.owned(t, slip)
	slip.waits = "its edit waits"
	now.Step(2 * returnsWithin)
	if f := r.owned(t, slip); !f.claims.Held["victim"] {
		t.Error("the content of an owner counts as known while its edit waits")
	}
	slip.waits = ""
	if f := r.owned(t, slip); !f.claims.Missing["victim"]["web"] || f.recheck != returnsWithin {
		t.Errorf("once it is read, missing %v, next pass in %s", f.claims.Missing, f.recheck)
	}
}
