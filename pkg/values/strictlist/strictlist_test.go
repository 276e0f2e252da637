package strictlist_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-addons/trellis/pkg/values/strictlist"
)

var list = strictlist.List{ConfigMap: "list", Key: "items.yaml", Of: "texts", Items: 3, Bytes: 100, Depth: 3}

func read(text string) ([]string, error) {
	return strictlist.Read(list, text, func(written any) (string, string, error) {
		text, isText := written.(string)
		if !isText {
			return "", "named", errors.New("it is not a string")
		}
		return text, text, nil
	})
}

func readFound(found *corev1.ConfigMap) ([]string, error) {
	text, err := list.Text(found)
	if err != nil {
		return nil, err
	}
	return read(text)
}

// AG25: A problem is told with its item, also one of the document's form; a list is taken whole or not at all.
func TestProblemsNameTheirItem(t *testing.T) {
	const at = `ConfigMap "list", key "items.yaml": `
	for _, test := range []struct{ why, text, want string }{
		{"of an item", "- a\n- [b]\n", at + `item 2 ("named"): it is not a string`},
		{"of the form", "- a\n- b\n- c: 1\n  c: 2\n", at + `item 3: line 4: has key "c" twice`},
		{"of the form, in one line", "[a, {b: 1, b: 2}]", at + `item 2: line 1: has key "b" twice`},
		{"of the form, in no list", "a:\n  b: 1\n  b: 2\n", at + `line 3: has key "b" twice`},
		{"that no tree was read for", "- a\n- {", at + `line 2: is not valid YAML: did not find expected node content`},
		{"of the whole", "a: b", at + "it is not a list of texts"},
		{"in number", "[a, b, c, d]", at + "it has 4 items, at most 3 are allowed"},
	} {
		items, err := read(test.text)
		if err == nil || err.Error() != test.want || items != nil {
			t.Errorf("%s: %v, %v; want %q", test.why, items, err, test.want)
		}
	}
}

func found(version, text string) *corev1.ConfigMap {
	made := &corev1.ConfigMap{Data: map[string]string{"items.yaml": text}}
	made.ResourceVersion = version
	return made
}

// AG25: The last good list stays where the present one is wrong; that there is none may mean an empty one.
func TestTheLastGoodListStays(t *testing.T) {
	var kept strictlist.Kept[string]
	if state, isNew := kept.Update(found("1", "a: b"), readFound); !isNew || state.Read || state.Problem == nil {
		t.Errorf("wrong at the start: %+v", state)
	}
	if state, isNew := kept.Update(found("2", "[a]"), readFound); !isNew || len(state.Items) != 1 || !state.Read {
		t.Errorf("good: %+v", state)
	}
	if _, isNew := kept.Update(found("2", "[a, b]"), readFound); isNew {
		t.Error("one version is read twice")
	}
	if state := kept.With(found("3", "[a, b]"), readFound); len(state.Items) != 2 || len(kept.State().Items) != 1 {
		t.Errorf("a look: %+v, and then %+v", state, kept.State())
	}
	if state, _ := kept.Update(&corev1.ConfigMap{}, readFound); len(state.Items) != 1 || !state.Read || state.Problem == nil {
		t.Errorf("without its key: %+v", state)
	}
	if state, _ := kept.Update(nil, readFound); len(state.Items) != 1 || !state.Absent || state.Problem != nil {
		t.Errorf("gone: %+v", state)
	}
	if state := kept.Empty(); len(state.Items) != 0 || !state.Read || !state.Absent {
		t.Errorf("gone, which means empty: %+v", state)
	}
	if state, isNew := kept.Update(found("2", "{"), readFound); !isNew || !state.Read || len(state.Items) != 0 {
		t.Errorf("wrong after none: %+v", state)
	}
}
