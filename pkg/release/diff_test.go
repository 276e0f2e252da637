package release

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// of is a record with objects written as YAML.
func of(t *testing.T, revision int, documents ...string) *Record {
	t.Helper()
	record := &Record{Revision: revision}
	for _, document := range documents {
		raw, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		record.Objects = append(record.Objects, raw)
	}
	return record
}

const (
	diffSecret = `{apiVersion: v1, kind: Secret, metadata: {namespace: a, name: s}, data: {"tls.key": %s, user: YQ==}}`
	diffPod    = `{apiVersion: v1, kind: Pod, metadata: {namespace: a, name: p}, spec: {containers: [%s]}}`
)

// Red when an object that is new counts as changed, when a list is not compared by its items' names, or when a key with a dot
// reads as two.
func TestDiffNamesObjectsAndFields(t *testing.T) {
	secret := ownership.Key{Kind: "Secret", Namespace: "a", Name: "s"}
	pod := ownership.Key{Kind: "Pod", Namespace: "a", Name: "p"}
	for _, test := range []struct {
		why           string
		before, after []string
		want          Difference
	}{
		{"equal", []string{fmt.Sprintf(diffSecret, "eA==")}, []string{fmt.Sprintf(diffSecret, "eA==")}, Difference{}},
		{"added", nil, []string{fmt.Sprintf(diffSecret, "eA==")}, Difference{Added: []ownership.Key{secret}}},
		{"removed", []string{fmt.Sprintf(diffPod, "")}, nil, Difference{Removed: []ownership.Key{pod}}},
		{
			"a key with a dot", []string{fmt.Sprintf(diffSecret, "eA==")}, []string{fmt.Sprintf(diffSecret, "eQ==")},
			Difference{Changed: []ObjectChange{{secret, []string{`.data["tls.key"]`}}}},
		},
		{
			"items that moved, changed, came and went", []string{fmt.Sprintf(diffPod, "{name: a, image: i}, {name: b, image: i}, {name: c}")},
			[]string{fmt.Sprintf(diffPod, "{name: b, image: j}, {name: a, image: i}, {name: d}")},
			Difference{Changed: []ObjectChange{{pod, []string{
				".spec.containers[name=b].image", ".spec.containers[name=c]", ".spec.containers[name=d]",
			}}}},
		},
		{
			"plain lists", []string{fmt.Sprintf(diffPod, "1, 2")}, []string{fmt.Sprintf(diffPod, "1, 3")},
			Difference{Changed: []ObjectChange{{pod, []string{".spec.containers[1]"}}}},
		},
		{
			"lists of other lengths", []string{fmt.Sprintf(diffPod, "1, 2")}, []string{fmt.Sprintf(diffPod, "1")},
			Difference{Changed: []ObjectChange{{pod, []string{".spec.containers"}}}},
		},
	} {
		t.Run(test.why, func(t *testing.T) {
			got, err := Diff(of(t, 1, test.before...), of(t, 2, test.after...))
			if err != nil {
				t.Fatal(err)
			}
			test.want.From, test.want.To = 1, 2
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.IsEmpty() != (test.why == "equal") {
				t.Errorf("empty is %t", got.IsEmpty())
			}
		})
	}
}

// Red when hooks are not compared, when two of one template are one, or when how a hook ran counts.
func TestDiffOfHooks(t *testing.T) {
	hook := func(name string, change func(*Hook)) Hook {
		made := jobHook(name, 1, deleteSucceeded, deleteFailed)
		made.Path = "templates/hooks.yaml"
		if change != nil {
			change(&made)
		}
		return made
	}
	before, after := of(t, 1), of(t, 2)
	before.Hooks = []Hook{hook("same", nil), hook("gone", nil), hook("edited", nil), hook("moved", nil)}
	after.Hooks = []Hook{
		hook("new", nil),
		hook("same", func(h *Hook) {
			h.Run, h.DeletePolicies = &HookRun{Phase: PhaseSucceeded}, []string{deleteFailed, deleteSucceeded}
		}),
		hook("edited", func(h *Hook) {
			h.Object = json.RawMessage(strings.Replace(string(h.Object), `"image":"a"`, `"image":"canary"`, 1))
		}),
		hook("moved", func(h *Hook) { h.Events, h.Weight, h.LogPolicies = []string{"post-install"}, 2, []string{deleteFailed} }),
	}
	got, err := Diff(before, after)
	if err != nil {
		t.Fatal(err)
	}
	key := func(name string) HookKey {
		return HookKey{Path: "templates/hooks.yaml", Object: ownership.Key{Group: "batch", Kind: "Job", Namespace: "NAMESPACE", Name: name}}
	}
	want := Difference{
		From: 1, To: 2, AddedHooks: []HookKey{key("new")}, RemovedHooks: []HookKey{key("gone")}, ChangedHooks: []HookChange{
			{key("edited"), []string{".object.spec.template.spec.containers[name=a].image"}},
			{key("moved"), []string{".events", ".logPolicies", ".weight"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if same, err := Diff(before, before); err != nil || !same.IsEmpty() {
		t.Errorf("of the same: %+v, %v", same, err)
	}
	after.Hooks[0].Object = json.RawMessage(`{"canary`)
	if _, err := Diff(before, after); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v", err)
	}
}

// Red when the version, the content, the chart, a value or a value's origin is left out.
func TestDiffOfWhatObjectsWereMadeFrom(t *testing.T) {
	before, after := of(t, 3), of(t, 4)
	before.Version, after.Version = "1.0.0", "2.0.0"
	before.Artifact, after.Artifact = v1.Artifact{Digest: "a"}, v1.Artifact{Digest: "b"}
	after.Helm = &HelmRelease{ChartName: "web", ChartVersion: "2"}
	before.Values = map[string]any{"replicas": 1, "same": map[string]any{"x": true}, "gone": "x"}
	after.Values = map[string]any{"replicas": int64(2), "same": map[string]any{"x": true}}
	before.Origins = map[string]string{"replicas": "catalogue", "gone": "installation"}
	after.Origins = map[string]string{"replicas": "installation"}
	got, err := Diff(before, after)
	if err != nil {
		t.Fatal(err)
	}
	want := Difference{
		From: 3, To: 4, Version: &Change{"1.0.0", "2.0.0"}, Artifact: &Change{"a", "b"}, Chart: &Change{"", "web 2"},
		Values:  []string{".gone", ".replicas"},
		Origins: []OriginChange{{"gone", "installation", ""}, {"replicas", "catalogue", "installation"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// AC45: what objects and values hold is in no text of a difference. Red when a value is put into one.
func TestAC45DiffRepeatsNoValue(t *testing.T) {
	before, after := of(t, 1, fmt.Sprintf(diffSecret, "canary-one")), of(t, 2, fmt.Sprintf(diffSecret, "canary-two"))
	before.Values, after.Values = map[string]any{"password": "canary-three"}, map[string]any{"password": []any{"canary-four"}}
	got, err := Diff(before, after)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(got)
	if err != nil || strings.Contains(string(text), "canary") || len(got.Changed) != 1 || len(got.Values) != 1 {
		t.Errorf("%s, %v", text, err)
	}
	broken := &Record{Revision: 3, Objects: []json.RawMessage{[]byte(`{"canary`)}}
	if _, err := Diff(before, broken); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v", err)
	}
}

func TestDiffOfNothingAndOfLightRecords(t *testing.T) {
	record := of(t, 1, fmt.Sprintf(diffSecret, "eA=="))
	if got, err := Diff(nil, record); err != nil || len(got.Added) != 1 || got.From != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
	var light *LightError
	if _, err := Diff(record, record.Light()); !errors.As(err, &light) {
		t.Errorf("got %v, want a LightError: everything would look removed", err)
	}
}

// Red when two hooks of one name in one template, for an event each, count as one: a change of the first would not be told.
func TestDiffOfHooksOfOneName(t *testing.T) {
	hook := func(event string, weight int) Hook {
		return Hook{Path: "templates/hooks.yaml", Events: []string{event}, Weight: weight, Object: json.RawMessage(
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"mark","namespace":"shop"}}`)}
	}
	before, after := sample(1, 0), sample(2, 0)
	before.Hooks = []Hook{hook("pre-install", 1), hook("post-install", 1)}
	after.Hooks = []Hook{hook("pre-install", 2), hook("post-install", 1)}
	got, err := Diff(before, after)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.ChangedHooks) != 1 || got.ChangedHooks[0].Key.Place != 0 || got.ChangedHooks[0].Fields[0] != ".weight" {
		t.Errorf("changed hooks are %+v, want the weight of the first", got.ChangedHooks)
	}
}
