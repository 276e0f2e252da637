package survey_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/survey"
	"github.com/trellis-addons/trellis/test/lab"
)

// TestDriftIsFoundAndRepaired fails, in the order of the cases, if: fieldsets.Lost compares nothing; compare ignores
// missing objects; compare ignores the label; fieldsets.Lost counts gained fields; the UID is not compared; Repair does
// not adopt.
func TestDriftIsFoundAndRepaired(t *testing.T) {
	for name, test := range map[string]struct {
		disturb func(*lab.Lab)
		want    string
		fields  string
		data    map[string]any
		adopt   bool
		refused []string
		why     string
	}{
		"edited": {
			disturb: func(l *lab.Lab) { l.Edit(lab.ConfigMaps, "settings", `{data: {color: red, mine: kept}}`) },
			want:    survey.DriftFieldsLost, fields: ".data.color", data: map[string]any{"color": "green", "mine": "kept"},
			why: "the edited field comes back, an added one stays",
		},
		"deleted": {
			disturb: func(l *lab.Lab) { l.Delete(lab.ConfigMaps, l.Unique, "settings") },
			want:    survey.DriftMissing, data: map[string]any{"color": "green"}, why: "it is made anew",
		},
		"label lost": {
			disturb: func(l *lab.Lab) {
				l.Edit(lab.ConfigMaps, "settings", `{metadata: {labels: {addons.kubermatic.k8c.io/installation: null}}}`)
			},
			want: survey.DriftMissing, data: map[string]any{"color": "green"}, why: "no list finds it without its label",
		},
		"label changed": {
			disturb: func(l *lab.Lab) {
				l.Edit(lab.ConfigMaps, "settings", `{metadata: {labels: {addons.kubermatic.k8c.io/installation: somebody}}}`)
			},
			want: survey.DriftFieldsLost, fields: ".metadata.labels.addons.kubermatic.k8c.io/installation",
			data: map[string]any{"color": "green"}, why: "the list finds it with a wrong label",
		},
		"only added to": {
			disturb: func(l *lab.Lab) { l.Edit(lab.ConfigMaps, "settings", `{data: {mine: kept}}`) },
			want:    "", data: map[string]any{"color": "green", "mine": "kept"}, why: "others may add fields of their own",
		},
		"replaced": {
			disturb: func(l *lab.Lab) {
				l.Delete(lab.ConfigMaps, l.Unique, "settings")
				l.Create(lab.ConfigMaps, l.Unique, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: b}}`)
			},
			want: survey.DriftMissing, data: map[string]any{"a": "b"},
			refused: []string{"ConfigMap settings: ObjectExists"}, why: "another object of the name is not ours",
		},
		"replaced, to be adopted": {
			disturb: func(l *lab.Lab) {
				l.Delete(lab.ConfigMaps, l.Unique, "settings")
				l.Create(lab.ConfigMaps, l.Unique, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red}}`)
			},
			want: survey.DriftMissing, data: map[string]any{"color": "green"}, adopt: true, why: "it is taken over on demand",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := lab.New(t)
			l.Namespace()
			objects := l.Prepare(lab.TwoMaps)
			inventory := l.Install(objects, nil)
			other := l.Get(lab.ConfigMaps, l.Unique, "other").GetResourceVersion()
			test.disturb(l)
			drift := l.Drift(inventory)
			if got := driftReasons(drift); got != strings.TrimSpace(test.want) {
				t.Fatalf("%s: got drift %q, want %q", test.why, got, test.want)
			}
			if test.fields != "" && (len(drift) == 0 || strings.Join(drift[0].Fields, " ") != test.fields) {
				t.Errorf("%s: got drift %v, want field %s", test.why, drift, test.fields)
			}
			applied := apply.Applied{Objects: objects, Inventory: inventory, Adopt: test.adopt}
			repaired := lab.Must(apply.Repair(t.Context(), l.Target, l.Owner, lab.KeysOf(drift), applied))(t)
			if diff := cmp.Diff(test.refused, lab.Reasons(repaired.Refused)); diff != "" {
				t.Errorf("%s, refused (-want +got):\n%s", test.why, diff)
			}
			if diff := cmp.Diff(test.data, l.Get(lab.ConfigMaps, l.Unique, "settings").Object["data"]); diff != "" {
				t.Errorf("%s, data (-want +got):\n%s", test.why, diff)
			}
			if again := l.Drift(repaired.Inventory); len(test.refused) == 0 && len(again) > 0 {
				t.Errorf("%s: it has still drifted: %v", test.why, again)
			}
			if now := l.Get(lab.ConfigMaps, l.Unique, "other").GetResourceVersion(); now != other {
				t.Errorf("%s: the object that had not drifted was written", test.why)
			}
		})
	}
}

func driftReasons(drift []survey.Drift) string {
	var words []string
	for _, one := range drift {
		words = append(words, one.Reason)
	}
	return strings.Join(words, " ")
}

// TestSurveyListsOnceAKindAndRound fails if round.list does not keep its lists, or if a round never ends.
func TestSurveyListsOnceAKindAndRound(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	inventory := l.Install(l.Prepare(lab.TwoMaps), nil)
	now := time.Now()
	s := survey.New(time.Minute, func() time.Time { return now })
	find := func() []string {
		return l.Calls.During("", func() {
			if drift := lab.Must(s.Drifted(t.Context(), l.Target, l.Owner, inventory))(t); len(drift) > 0 {
				t.Errorf("drift where nothing changed: %v", drift)
			}
		})
	}
	want := []string{"GET /api/v1/configmaps"}
	if diff := cmp.Diff(want, find()); diff != "" {
		t.Errorf("first look (-want +got):\n%s", diff)
	}
	if again := find(); len(again) > 0 {
		t.Errorf("a second look in the same round asked %q", again)
	}
	now = now.Add(2 * time.Minute)
	if s.Due() != 0 {
		t.Error("a round that is over is due")
	}
	if diff := cmp.Diff(want, find()); diff != "" {
		t.Errorf("next round (-want +got):\n%s", diff)
	}
}

// TestSecretVersionsComeFromOneList fails if each Secret is read separately, or if a change does not show in the next
// round.
func TestSecretVersionsComeFromOneList(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	secret := `{apiVersion: v1, kind: Secret, metadata: {name: web, labels: {addons.kubermatic.k8c.io/installation: any}}}`
	made := l.Create(lab.Secrets, l.Unique, secret)
	now := time.Now()
	s := survey.New(time.Minute, func() time.Time { return now })
	version := func(name string) string { return lab.Must(s.SecretVersion(t.Context(), l.Target, l.Unique, name))(t) }
	calls := l.Calls.During("", func() {
		if first, none := version("web"), version("none"); first != made.GetResourceVersion() || none != "" {
			t.Errorf("versions %q and %q, want %q and none", first, none, made.GetResourceVersion())
		}
	})
	if diff := cmp.Diff([]string{"GET /api/v1/secrets"}, calls); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	l.Edit(lab.Secrets, "web", `{stringData: {by: hand}}`)
	now = now.Add(2 * time.Minute)
	if after := version("web"); after == made.GetResourceVersion() || after == "" {
		t.Errorf("version %q after an edit", after)
	}
}

// TestListOlderThanApplyIsNoDrift fails if drift in an old list is not confirmed: an object applied after the list
// counts as missing.
func TestListOlderThanApplyIsNoDrift(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	s := survey.New(time.Hour, time.Now)
	inventory := l.Install(l.Prepare(lab.Settings), nil)
	lab.Must(s.Drifted(t.Context(), l.Target, l.Owner, inventory))(t)
	inventory = l.Install(l.Prepare(lab.TwoMaps), inventory)
	if drift := lab.Must(s.Drifted(t.Context(), l.Target, l.Owner, inventory))(t); len(drift) > 0 {
		t.Errorf("got %v, want no drift", drift)
	}
}

// TestFinishedJobsMayVanish fails if compare ignores Entry.Finished.
func TestFinishedJobsMayVanish(t *testing.T) {
	entry := ownership.Entry{Key: ownership.Key{Group: "batch", Kind: "Job", Namespace: "default", Name: "no-such-job"}, Version: "v1", UID: "1"}
	l := lab.New(t)
	if drift := l.Drift(ownership.Inventory{entry}); driftReasons(drift) != survey.DriftMissing {
		t.Errorf("an unfinished job that vanished is drift, got %v", drift)
	}
	if drift := l.Drift(ownership.Inventory{entry}.Finish([]ownership.Key{entry.Key})); len(drift) > 0 {
		t.Errorf("a finished job that vanished is no drift, got %v", drift)
	}
}

// TestRepairedObjectsAreReadAgainInTheSameRound fails under the race detector if the reads share a variable: one's
// failure would be another's, or be lost.
func TestRepairedObjectsAreReadAgainInTheSameRound(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	objects := l.Prepare(lab.TwoMaps)
	inventory := l.Install(objects, nil)
	l.Delete(lab.ConfigMaps, l.Unique, "settings")
	l.Delete(lab.ConfigMaps, l.Unique, "other")
	s := survey.New(time.Minute, time.Now)
	drift := lab.Must(s.Drifted(t.Context(), l.Target, l.Owner, inventory))(t)
	if got := driftReasons(drift); got != survey.DriftMissing+" "+survey.DriftMissing {
		t.Fatalf("got drift %q, want both missing", got)
	}
	repaired := lab.Must(apply.Repair(t.Context(), l.Target, l.Owner, lab.KeysOf(drift), apply.Applied{Objects: objects, Inventory: inventory}))(t)

	if again := lab.Must(s.Drifted(t.Context(), l.Target, l.Owner, repaired.Inventory))(t); len(again) > 0 {
		t.Errorf("what was put back has still drifted: %v", again)
	}
}
