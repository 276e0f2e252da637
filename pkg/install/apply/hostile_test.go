package apply_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/survey"
	"github.com/trellis-addons/trellis/test/hostile"
	"github.com/trellis-addons/trellis/test/lab"
)

// TestFieldsThatWereNotSentAreNotRecorded fails if accept records the fields of an answer regardless of their size:
// each record would have them.
func TestFieldsThatWereNotSentAreNotRecorded(t *testing.T) {
	l, server := lab.NewHostile(t)
	l.Namespace()
	objects := l.Prepare(lab.Settings)
	server.SetDose(hostile.ModeNamed("lying-fields"), hostile.Dose{Size: 50_000})
	progress := l.Rollout(objects, nil, apply.RolloutOptions{})
	if !progress.Complete || len(progress.Misbehaved) != len(objects) {
		t.Fatalf("the rollout is complete: %v; told about %v of %d objects", progress.Complete, lab.Reasons(progress.Misbehaved), len(objects))
	}
	size := 0
	for _, entry := range progress.Inventory {
		size += len(entry.Fields)
	}
	if size > 10_000 {
		t.Errorf("%d bytes of fields are on record", size)
	}
	server.Set(hostile.Truth)
	s := survey.New(0, time.Now)
	if drift := lab.Must(s.Drifted(t.Context(), l.Target, l.Owner, progress.Inventory))(t); len(drift) > 0 {
		t.Errorf("nothing changed, and %v drifted", drift)
	}
	l.Delete(lab.ConfigMaps, l.Unique, "settings")
	drift := lab.Must(s.Drifted(t.Context(), l.Target, l.Owner, progress.Inventory))(t)
	if len(drift) != 1 || drift[0].Reason != survey.DriftMissing {
		t.Errorf("one object is gone, and %v drifted", drift)
	}
}

// TestIdentitiesThatCanNotBeAreRefused fails if any UID of an answer is accepted, of an object or of a hook; or if an
// answer may be about another object.
func TestIdentitiesThatCanNotBeAreRefused(t *testing.T) {
	for mode, known := range map[string]bool{"lying-uid": false, "other-object": true} {
		t.Run(mode, func(t *testing.T) {
			l, server := lab.NewHostile(t)
			l.Namespace()
			objects, inventory := l.Prepare(lab.Settings), ownership.Inventory(nil)
			if known {
				inventory = l.Install(objects, nil)
				for i := range inventory {
					inventory[i].UID = "" // as planned: it is looked up
				}
			}
			server.SetDose(hostile.ModeNamed(mode), hostile.Dose{Size: 50_000})
			progress, err := apply.NewRollout(l.Owner, objects, inventory, apply.RolloutOptions{Adopt: known}).Advance(t.Context(), l.Target)
			lab.ExpectMisbehaviour(t, "a rollout", err)
			for _, entry := range progress.Inventory {
				if entry.UID != "" {
					t.Errorf("%s counts as ours by UID %.50q", entry.Key, entry.UID)
				}
			}
			hook := apply.Hook{Object: l.Prepare(strings.ReplaceAll(lab.Settings, "settings", "hook"))[0], Run: "run", TargetNamespace: l.Unique}
			if known {
				_, err = apply.ReadHook(t.Context(), l.Target, l.Owner, apply.Hook{Object: objects[0], TargetNamespace: l.Unique})
			} else {
				_, _, err = apply.CreateHook(t.Context(), l.Target, l.Owner, hook)
			}
			lab.ExpectMisbehaviour(t, "a hook", err)
		})
	}
}

// TestRepairedAsBeforeIsNothingNewToRecord fails if a repair that restores the recorded state counts as a change to
// record.
func TestRepairedAsBeforeIsNothingNewToRecord(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	objects := l.Prepare(lab.Settings)
	inventory := l.Install(objects, nil)
	l.Edit(lab.ConfigMaps, "settings", `{data: {color: red}}`)
	drift := lab.Must(survey.New(0, time.Now).Drifted(t.Context(), l.Target, l.Owner, inventory))(t)
	fixed := lab.Must(apply.Repair(t.Context(), l.Target, l.Owner, lab.KeysOf(drift), apply.Applied{Objects: objects, Inventory: inventory}))(t)
	for i := range min(len(inventory), len(fixed.Inventory)) {
		fixed.Inventory[i].WrittenAt = inventory[i].WrittenAt // the next second may have begun in between
	}
	if diff := cmp.Diff(inventory, fixed.Inventory); diff != "" || fixed.Written != 1 {
		t.Errorf("%d written; the inventory changed (-before +after):\n%s", fixed.Written, diff)
	}
}

// TestConflictsAboutFieldsThatWereNotSentAreRefused fails if each field that a conflict names is looked up although it
// was never sent.
func TestConflictsAboutFieldsThatWereNotSentAreRefused(t *testing.T) {
	l, server := lab.NewHostile(t)
	l.Namespace()
	objects := l.Prepare(lab.Settings)
	inventory := l.Install(objects, nil)
	server.SetDose(hostile.ModeNamed("many-conflicts"), hostile.Dose{Size: 5000})
	_, err := apply.NewRollout(l.Owner, objects, inventory.Unconfirmed(), apply.RolloutOptions{Adopt: true}).Advance(t.Context(), l.Target)
	lab.ExpectMisbehaviour(t, fmt.Sprintf("%d objects", len(objects)), err)
}
