package coreaddon

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

const goodList = `
- name: monitoring
  addonRef: {name: prometheus, version: ">= 2, < 3"}
  targetNamespace: monitoring
  createNamespace: true
  values: {replicas: 2}
  clusterSelector: {matchLabels: {tier: production}}
- name: kube-proxy
  addonRef: {name: kube-proxy, version: v1.36.3}
  targetNamespace: kube-system
`

func TestReadList(t *testing.T) {
	items, err := readList(goodList)
	if err != nil {
		t.Fatal(err)
	}
	if len(items) != 2 || items[0].name != "monitoring" || items[1].spec.AddonRef.Version != "v1.36.3" {
		t.Fatalf("read %+v", items)
	}
	if items[0].selector.Matches(labels.Set{"tier": "test"}) || !items[0].selector.Matches(labels.Set{"tier": "production"}) ||
		!items[1].selector.Matches(labels.Set{}) {
		t.Error("the selectors select something else")
	}
	if !items[0].spec.CoreAddon || items[0].spec.ReconcileStrategy != v1.ReconcileContinuous {
		t.Errorf("defaults are not filled in: %+v", items[0].spec)
	}
	for _, empty := range []string{"", "[]", "# nothing yet\n"} {
		if items, err := readList(empty); err != nil || len(items) != 0 {
			t.Errorf("%q: %v, %v", empty, items, err)
		}
	}
}

func TestReadListRefuses(t *testing.T) {
	const good = "- {name: a, addonRef: {name: a}, targetNamespace: a}\n"
	for _, test := range []struct{ why, text, want string }{
		{"no YAML", "- {", "is not valid YAML"},
		{"a map", "addons: []", "it is not a list"},
		{"an unknown field", good + "- {name: b, addonRef: {name: b}, targetNamespace: b, targetnamespace2: b}", `item 2`},
		{"a name twice", good + good, `name "a" is used twice`},
		{"no name", "- {addonRef: {name: a}, targetNamespace: a}", "name: it is missing"},
		{"no add-on", "- {name: a, targetNamespace: a}", "addonRef.name: it is missing"},
		{"a bad namespace", "- {name: a, addonRef: {name: a}, targetNamespace: A}", "targetNamespace: "},
		{"a bad range", "- {name: a, addonRef: {name: a, version: '>= x.y.z.w'}, targetNamespace: a}", "addonRef.version: "},
		{"a bad version", "- {name: a, addonRef: {name: a, version: '/'}, targetNamespace: a}", "addonRef.version: "},
		{"values that are no map", "- {name: a, addonRef: {name: a}, targetNamespace: a, values: [1]}", "values: "},
		{"a bad strategy", "- {name: a, addonRef: {name: a}, targetNamespace: a, reconcileStrategy: Never}", "reconcileStrategy: "},
		{"a bad policy", "- {name: a, addonRef: {name: a}, targetNamespace: a, deletionPolicy: Never}", "deletionPolicy: "},
		{"a source of two kinds", "- {name: a, addonRef: {name: a}, targetNamespace: a, valuesFrom: [{}]}", "valuesFrom[0]: "},
		{"a bad selector", "- {name: a, addonRef: {name: a}, targetNamespace: a, clusterSelector: {matchLabels: {'a b': c}}}", "clusterSelector: "},
		{"a rule's add-on under another name", "- {name: a, addonRef: {name: canal}, targetNamespace: a}", `a built-in rule has add-on "canal"`},
		{"too many", strings.Repeat("- {}\n", maxItems+1), "at most 128"},
		{"a key twice", "- {name: a, name: b}", ListName},
	} {
		t.Run(test.why, func(t *testing.T) {
			items, err := readList(test.text)
			var refusal *ListError
			if !errors.As(err, &refusal) || len(items) != 0 {
				t.Fatalf("got %v, %v", items, err)
			}
			if !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), ListKey) {
				t.Errorf("%q does not say %q and where", err, test.want)
			}
		})
	}
}

func TestListErrorsHoldNoValue(t *testing.T) {
	const secret = "hunter2"
	for _, text := range []string{
		"- {name: a, addonRef: {name: a}, targetNamespace: a, values: " + secret + "}",
		"- {name: a, addonRef: {name: a}, targetNamespace: a, values: {a: '" + secret + "}",
		"- {name: a, addonRef: {name: a}, targetNamespace: a, valuesFrom: " + secret + "}",
	} {
		if _, err := readList(text); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTheLastGoodListStays(t *testing.T) {
	var kept lists
	state, _ := kept.update(nil)
	if !state.Absent || state.Read || state.Problem != nil {
		t.Fatalf("without a list: %+v", state)
	}
	bad := configMap("1", "- {")
	if state, changed := kept.update(bad); !changed || state.Problem == nil || state.Read || state.Absent {
		t.Fatalf("a bad list at the start: %+v", state)
	}
	if _, changed := kept.update(bad); changed {
		t.Error("the same list is read twice")
	}
	if state, _ := kept.update(configMap("2", goodList)); len(state.Items) != 2 || state.Problem != nil || !state.Read {
		t.Fatalf("a good list: %+v", state)
	}
	if state, _ := kept.update(configMap("3", "- {")); len(state.Items) != 2 || state.Problem == nil {
		t.Errorf("a bad list later: %+v", state)
	}
	if state, _ := kept.update(&corev1.ConfigMap{}); len(state.Items) != 2 || state.Problem == nil {
		t.Errorf("a list without its key: %+v", state)
	}
	if state, _ := kept.update(nil); len(state.Items) != 2 || !state.Absent {
		t.Errorf("a list that is deleted: %+v", state)
	}
	if state, _ := kept.update(configMap("4", "[]")); len(state.Items) != 0 || state.Problem != nil {
		t.Errorf("an empty list: %+v", state)
	}
}

func configMap(version, text string) *corev1.ConfigMap {
	found := &corev1.ConfigMap{Data: map[string]string{ListKey: text}}
	found.ResourceVersion = version
	return found
}

// FuzzReadList: only the platform's admins write the list, but a typing error must never end the process.
func FuzzReadList(f *testing.F) {
	f.Add(goodList)
	f.Add("- {name: a, addonRef: {name: a}, targetNamespace: a, values: {a: [1, null]}}")
	f.Fuzz(func(t *testing.T, text string) {
		items, err := readList(text)
		if err != nil && len(items) != 0 {
			t.Error("a list is half taken")
		}
		for _, one := range items {
			if one.name == "" || one.selector == nil || !one.spec.CoreAddon {
				t.Errorf("item %+v", one)
			}
		}
	})
}
