package apply_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/test/lab"
)

// TestUpdateWritesWhatDiffers fails if NewRollout keeps no applied object: every object is written.
func TestUpdateWritesWhatDiffers(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	all := lab.TwoMaps + "\n---\n" + lab.Deployment
	inventory := l.Update(all, nil)
	l.Edit(lab.ConfigMaps, "other", `{data: {shape: square}}`)
	calls := l.Writes(func() { inventory = l.Update(strings.Replace(all, "green", "blue", 1), inventory) })
	if diff := cmp.Diff([]string{"PATCH /api/v1/namespaces/" + l.Unique + "/configmaps/settings"}, calls); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"color": "blue"}, l.Data("settings")); diff != "" {
		t.Errorf("what differs (-want +got):\n%s", diff)
	}
	if drift := l.Drift(inventory); len(drift) != 1 || drift[0].Key.Name != "other" {
		t.Errorf("what was edited by hand is for drift to find: %v", drift)
	}
	if calls := l.Calls.During("", func() { l.Update(strings.Replace(all, "green", "blue", 1), inventory) }); len(calls) > 0 {
		t.Errorf("an update without a difference made calls: %q", calls)
	}
}

// An interrupted update may have written its planned objects: content that it was to change does not count as applied.
// It fails if Planned keeps the content of objects to change.
func TestInterruptedUpdateIsTakenBack(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	inventory := l.Update(lab.TwoMaps, nil)
	changed := l.Prepare(strings.Replace(lab.TwoMaps, "green", "blue", 1))
	planned := apply.Planned(changed, inventory)
	l.Install(changed, planned) // and its end is not recorded
	l.Update(lab.TwoMaps, planned)
	if diff := cmp.Diff(map[string]any{"color": "green"}, l.Data("settings")); diff != "" {
		t.Errorf("the change was not taken back (-want +got):\n%s", diff)
	}
}

// TestWhatIsNotKnownToBeAppliedIsWritten fails if an entry without Applied, or without a UID, counts as applied with
// its content.
func TestWhatIsNotKnownToBeAppliedIsWritten(t *testing.T) {
	for name, forget := range map[string]func(*ownership.Entry){
		"of an answer that can't be true": func(entry *ownership.Entry) { entry.Applied, entry.Replicas = false, nil },
		"planned and not reached":         func(entry *ownership.Entry) { entry.UID = "" },
	} {
		t.Run(name, func(t *testing.T) {
			l := lab.New(t)
			l.Namespace()
			inventory := l.Update(lab.TwoMaps, nil)
			l.Edit(lab.ConfigMaps, "settings", `{data: {color: red}}`)
			forgotten := slices.Clone(inventory)
			for i := range forgotten {
				forget(&forgotten[i])
			}
			again := l.Install(l.Prepare(lab.TwoMaps), forgotten)
			if diff := cmp.Diff(map[string]any{"color": "green"}, l.Data("settings")); diff != "" {
				t.Errorf("it was not written (-want +got):\n%s", diff)
			}
			later := cmpopts.IgnoreFields(ownership.Entry{}, "WrittenAt") // in seconds
			if diff := cmp.Diff(inventory, again, later); diff != "" {
				t.Errorf("the inventory afterwards (-before +after):\n%s", diff)
			}
		})
	}
}

// TestUpdateBringsBackWhatWentWithItsDefinition fails if checkReady does not recreate a deleted definition, and if its
// objects count as applied.
func TestUpdateBringsBackWhatWentWithItsDefinition(t *testing.T) {
	l := lab.New(t)
	inventory := l.Update(lab.Widgets, nil)
	l.Delete(lab.Definitions, "", "widgets."+l.Unique+".example.com")
	l.Eventually("the end of the definition", func() bool {
		return l.Get(lab.Definitions, "", "widgets."+l.Unique+".example.com") == nil
	})
	l.Update(strings.Replace(lab.Widgets, "green", "blue", 1), inventory)
	if l.Get(l.Widgets(), l.Unique, "first") == nil {
		t.Error("the definition's object is not there again")
	}
}

// TestUpdateOverTerminatingDefinitionEnds fails if a definition that was once served is never read again: new objects
// wait for its kind forever.
func TestUpdateOverTerminatingDefinitionEnds(t *testing.T) {
	l := lab.New(t)
	inventory := l.Update(lab.Widgets, nil)
	l.Edit(l.Widgets(), "first", `{metadata: {finalizers: [example.com/hold]}}`)
	l.Delete(lab.Definitions, "", "widgets."+l.Unique+".example.com")
	objects := l.Prepare(strings.Replace(lab.Widgets, "name: first", "name: second", 1))
	rollout := apply.NewRollout(l.Owner, objects, apply.Planned(objects, inventory), apply.RolloutOptions{})
	if progress := lab.Must(rollout.Advance(t.Context(), l.Target))(t); progress.Complete {
		t.Fatal("an object of a kind that ends was written")
	}
	l.Eventually("the hold is taken off", func() bool { // while a definition changes, its kind is not served for a moment
		return l.TryEdit(l.Widgets(), "first", `{metadata: {finalizers: null}}`) == nil
	})
	l.Eventually("the rollout with a new definition", func() bool {
		return lab.Must(rollout.Advance(t.Context(), l.Target))(t).Complete
	})
	if l.Get(l.Widgets(), l.Unique, "second") == nil {
		t.Error("the definition's object is not there")
	}
}
