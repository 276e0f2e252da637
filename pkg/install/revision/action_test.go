package revision

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/install/helmrelease"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
)

// hooked is a record without a Helm release, with a hook of these events.
func hooked(state State, action hooks.Action, events ...string) *Record {
	return &Record{State: state, Set: hooks.Set{Action: action, Hooks: []hooks.Hook{{Events: events, Object: []byte("{}")}}}}
}

// Which events the next revision of go-template has. Red when one that follows an installation which was never whole upgrades, so that what
// its hooks prepare is never there, and when one that follows an applied one installs again.
func TestActionsOfTemplates(t *testing.T) {
	ended := hooked(StateApplied, hooks.ActionInstall, "post-install")
	ended.HooksState.Ended = []string{"post-install"}
	for _, test := range []struct {
		why      string
		previous *Record
		want     hooks.Action
	}{
		{"nothing was there", nil, hooks.ActionInstall},
		{"an intent without hooks", &Record{State: StateIntent}, hooks.ActionInstall},
		{"an intent over another version, without hooks", &Record{State: StateIntent, From: "1.0.0"}, hooks.ActionUpgrade},
		{"an intent over another add-on, without hooks", &Record{State: StateIntent, PreviousAddon: "a"}, hooks.ActionUpgrade},
		{"applied without hooks", &Record{State: StateApplied}, hooks.ActionUpgrade},
		{"an installation under way", hooked(StateIntent, hooks.ActionInstall, "pre-install"), hooks.ActionInstall},
		{"an installation whose last hooks run", hooked(StateApplied, hooks.ActionInstall, "post-install"), hooks.ActionInstall},
		{"an installation whose last hooks ran", ended, hooks.ActionUpgrade},
		{"an installation with a hook for its end", hooked(StateApplied, hooks.ActionInstall, "pre-delete"), hooks.ActionUpgrade},
		{"an upgrade under way", hooked(StateIntent, hooks.ActionUpgrade, "pre-upgrade"), hooks.ActionUpgrade},
		{"a Helm release that was deployed", deployed(), hooks.ActionUpgrade},
		{"a Helm release that was never whole, over go-template", &Record{
			State: StateIntent, From: "1.0.0", Helm: &helmrelease.Release{}, Set: hooks.Set{Action: hooks.ActionInstall},
		}, hooks.ActionUpgrade},
		{"a Helm release that was never whole", &Record{
			State: StateIntent, Helm: &helmrelease.Release{}, Set: hooks.Set{Action: hooks.ActionInstall},
		}, hooks.ActionInstall},
	} {
		if got := NextAction(test.previous, nil); got != test.want {
			t.Errorf("%s: %s, want %s", test.why, got, test.want)
		}
	}
}

func deployed() *Record {
	return &Record{State: StateApplied, Helm: &helmrelease.Release{Status: "deployed"}, Set: hooks.Set{Action: hooks.ActionInstall}}
}

// Red when the index of a record without hooks of go-template changes, or that of one with them does not say so.
func TestIndexesSayWhatReadersNeedToKnow(t *testing.T) {
	for want, record := range map[string]*Record{
		"": deployed(), "hooks": hooked(StateApplied, hooks.ActionInstall, "pre-delete"),
	} {
		var needs []string
		if want != "" {
			needs = []string{want}
		}
		if diff := cmp.Diff(needs, indexOf(record, nil, nil).Needs); diff != "" {
			t.Errorf("needs (-want +got):\n%s", diff)
		}
	}
}

// Red when the action of a revision stays with the next, which has no hooks, or a removal's hooks are held back with those of charts.
func TestRevisionsWithoutHooksHaveNoAction(t *testing.T) {
	next := hooked(StateApplied, hooks.ActionInstall, "pre-delete")
	if !next.HasDeletionHooks("pre-delete") {
		t.Error("the hook of the removal does not run")
	}
	next.Hooks = nil
	next.Begin(hooks.ActionUpgrade)
	if next.Action != "" {
		t.Errorf("the action is %s", next.Action)
	}
}

// Red when a removal runs hooks though nothing was ever whole, or none though another version was there before the one that is under way.
func TestHooksOfRemovalsNeedSomethingToWorkOn(t *testing.T) {
	over := hooked(StateIntent, hooks.ActionInstall, "pre-delete")
	over.From, over.Helm = "1.0.0", &helmrelease.Release{}
	for _, test := range []struct {
		why    string
		record *Record
		want   bool
	}{
		{"applied", hooked(StateApplied, hooks.ActionInstall, "pre-delete"), true},
		{"a first one under way", hooked(StateIntent, hooks.ActionInstall, "pre-delete"), false},
		{"an upgrade under way", hooked(StateIntent, hooks.ActionUpgrade, "pre-delete"), true},
		{"a first release under way, over go-template", over, true},
		{"without such hooks", hooked(StateApplied, hooks.ActionInstall, "post-install"), false},
	} {
		if got := test.record.HasDeletionHooks("pre-delete"); got != test.want {
			t.Errorf("%s: %t, want %t", test.why, got, test.want)
		}
	}
}
