package api

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// rule is one rule of a schema with what passes it and what fails it.
type rule struct {
	// at is the place in the schema, as nodes writes it.
	at string
	// kind is "enum", "pattern", "minimum", "maximum", "maxItems" or "maxLength" and the number, or "cel: " and the message.
	kind string
	why  string
	// good and bad are edits of the kind's base object.
	good, bad edits
	// update tries good and bad as updates of the base object instead of creations.
	update bool
}

func (r rule) key() string { return r.at + " " + r.kind }

// says is what the API server's answer must contain.
func (r rule) says() string {
	switch kind, number, _ := strings.Cut(r.kind, " "); kind {
	case "maxItems":
		return "must have at most " + number + " items"
	case "maxLength":
		return "Too long: may not be more than " + number
	case "enum":
		return "Unsupported value"
	case "pattern":
		return "should match"
	case "minimum":
		return "should be greater than or equal to"
	case "maximum":
		return "should be less than or equal to"
	default:
		return strings.TrimPrefix(r.kind, "cel: ")
	}
}

// ruleKeys lists every rule that a CRD has; how long texts and lists may be only of AddonSets, which have the largest ones.
func ruleKeys(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var keys []string
	for _, place := range nodes(crd) {
		if strings.HasPrefix(place.path, "status") {
			continue
		}
		schema := place.schema
		add := func(present bool, kind string) {
			if present {
				keys = append(keys, place.path+" "+kind)
			}
		}
		add(len(schema.Enum) > 0, "enum")
		add(schema.Pattern != "", "pattern")
		add(schema.Minimum != nil, "minimum")
		add(schema.Maximum != nil, "maximum")
		if crd.Spec.Names.Kind == "AddonSet" {
			add(schema.MaxItems != nil, fmt.Sprintf("maxItems %d", deref(schema.MaxItems)))
			add(schema.MaxLength != nil, fmt.Sprintf("maxLength %d", deref(schema.MaxLength)))
		}
		for _, validation := range schema.XValidations {
			add(true, "cel: "+validation.Message)
		}
	}
	slices.Sort(keys)
	return keys
}

func deref(number *int64) int64 {
	if number == nil {
		return 0
	}
	return *number
}

func TestEveryRuleHasACase(t *testing.T) {
	for kind, rules := range rulesByKind() {
		tried := map[string]bool{}
		for _, rule := range rules {
			tried[rule.key()] = true
		}
		got := slices.Sorted(maps.Keys(tried))
		want := slices.Compact(ruleKeys(crds(t)[kind]))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("rules of %s without a case (-) and cases without a rule (+):\n%s", kind, diff)
		}
	}
}

// V20, AC13: Remotes that some program would read as options or as shell are refused by the API server.
func TestRules(t *testing.T) {
	everywhere(t, func(t *testing.T, config *rest.Config) {
		api := newObjects(t, config)
		for kind, rules := range rulesByKind() {
			for i, rule := range rules {
				t.Run(fmt.Sprintf("%s/%d %s", kind, i, rule.key()), func(t *testing.T) { api.check(t, kind, rule) })
			}
		}
	})
}

func (o objects) check(t *testing.T, kind string, rule rule) {
	t.Helper()
	base := parse(t, bases[kind])
	send := func(changed edits) error { return o.try(t.Context(), changed.on(t, base)) }
	if rule.update {
		kept := o.keep(t, base)
		send = func(changed edits) error {
			object := changed.on(t, kept)
			_, err := o.of(object).Update(t.Context(), object, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}
	}
	if err := send(rule.good); err != nil {
		t.Errorf("%s: refused although it is right: %v", rule.why, err)
	}
	err := send(rule.bad)
	if err == nil {
		t.Fatalf("%s: accepted although it is wrong", rule.why)
	}
	if !strings.Contains(err.Error(), rule.says()) {
		t.Errorf("%s: the answer does not say %q: %v", rule.why, rule.says(), err)
	}
}
