package apply_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// update is a rollout of what is planned over what is known, as after an intent on record.
func (l *lab) update(manifests string, known ownership.Inventory) ownership.Inventory {
	l.Helper()
	objects := l.prepare(manifests)
	return l.install(objects, apply.Planned(objects, known))
}

// writes are the calls that are no reading ones.
func (l *lab) writes(do func()) []string {
	l.Helper()
	return slices.DeleteFunc(l.calls.during("", do), func(call string) bool { return strings.HasPrefix(call, "GET ") })
}

func (l *lab) data(name string) any {
	l.Helper()
	live := l.get(configMaps, l.name, name)
	if live == nil {
		return nil
	}
	return live.Object["data"]
}

// Red when NewRollout keeps nothing that is applied: every object is written.
func TestUpdateWritesWhatDiffers(t *testing.T) {
	l := newLab(t)
	l.namespace()
	all := twoMaps + "\n---\n" + deployment
	inventory := l.update(all, nil)
	l.edit(configMaps, "other", `{data: {shape: square}}`)
	calls := l.writes(func() { inventory = l.update(strings.Replace(all, "green", "blue", 1), inventory) })
	if diff := cmp.Diff([]string{"PATCH /api/v1/namespaces/" + l.name + "/configmaps/settings"}, calls); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"color": "blue"}, l.data("settings")); diff != "" {
		t.Errorf("what differs (-want +got):\n%s", diff)
	}
	if drift := l.drift(inventory); len(drift) != 1 || drift[0].Key.Name != "other" {
		t.Errorf("what was edited by hand is for drift to find: %v", drift)
	}
	if calls := l.calls.during("", func() { l.update(strings.Replace(all, "green", "blue", 1), inventory) }); len(calls) > 0 {
		t.Errorf("an update without a difference made calls: %q", calls)
	}
}

// An update that ended in its midst may have written what it planned: what it was to change counts as applied in no way. Red when
// Planned leaves the content of what is about to change.
func TestInterruptedUpdateIsTakenBack(t *testing.T) {
	l := newLab(t)
	l.namespace()
	inventory := l.update(twoMaps, nil)
	changed := l.prepare(strings.Replace(twoMaps, "green", "blue", 1))
	planned := apply.Planned(changed, inventory)
	l.install(changed, planned) // and nobody records that it ended
	l.update(twoMaps, planned)
	if diff := cmp.Diff(map[string]any{"color": "green"}, l.data("settings")); diff != "" {
		t.Errorf("the change was not taken back (-want +got):\n%s", diff)
	}
}

// Red when an entry without Applied, or without a UID, counts as applied with its content.
func TestWhatIsNotKnownToBeAppliedIsWritten(t *testing.T) {
	for name, forget := range map[string]func(*ownership.Entry){
		"of an earlier release":   func(entry *ownership.Entry) { entry.Applied, entry.Replicas = false, nil },
		"planned and not reached": func(entry *ownership.Entry) { entry.UID = "" },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.namespace()
			inventory := l.update(twoMaps, nil)
			l.edit(configMaps, "settings", `{data: {color: red}}`)
			forgotten := slices.Clone(inventory)
			for i := range forgotten {
				forget(&forgotten[i])
			}
			again := l.install(l.prepare(twoMaps), forgotten)
			if diff := cmp.Diff(map[string]any{"color": "green"}, l.data("settings")); diff != "" {
				t.Errorf("it was not written (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(inventory, again); diff != "" {
				t.Errorf("the inventory afterwards (-before +after):\n%s", diff)
			}
		})
	}
}

// Red when checkReady leaves a definition that is gone as it is, and when what stood on it counts as applied.
func TestUpdateBringsBackWhatWentWithItsDefinition(t *testing.T) {
	l := newLab(t)
	inventory := l.update(widgets, nil)
	l.delete(definitions, "", "widgets."+l.name+".example.com")
	l.eventually("the end of the definition", func() bool {
		return l.get(definitions, "", "widgets."+l.name+".example.com") == nil
	})
	l.update(strings.Replace(widgets, "green", "blue", 1), inventory)
	if l.get(l.widgets(), l.name, "first") == nil {
		t.Error("the definition's object is not there again")
	}
}

// Red when a definition that was seen to be served is never looked at again: what is new waits for its kind for ever.
func TestUpdateOverTerminatingDefinitionEnds(t *testing.T) {
	l := newLab(t)
	inventory := l.update(widgets, nil)
	l.edit(l.widgets(), "first", `{metadata: {finalizers: [example.com/hold]}}`)
	l.delete(definitions, "", "widgets."+l.name+".example.com")
	objects := l.prepare(strings.Replace(widgets, "name: first", "name: second", 1))
	rollout := apply.NewRollout(l.owner, objects, apply.Planned(objects, inventory), apply.RolloutOptions{})
	if progress := must(rollout.Advance(t.Context(), l.target))(t); progress.Complete {
		t.Fatal("an object of a kind that ends was written")
	}
	l.eventually("the hold is taken off", func() bool { // while a definition changes, its kind is not served for a moment
		return l.tryEdit(l.widgets(), "first", `{metadata: {finalizers: null}}`) == nil
	})
	l.eventually("the rollout with a new definition", func() bool {
		return must(rollout.Advance(t.Context(), l.target))(t).Complete
	})
	if l.get(l.widgets(), l.name, "second") == nil {
		t.Error("the definition's object is not there")
	}
}
