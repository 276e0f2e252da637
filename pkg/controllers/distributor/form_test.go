package distributor_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// TestWrongFormIsRefused holds that what admission refuses is refused without it too: the schema
// lets such a form in.
func TestWrongFormIsRefused(t *testing.T) {
	w := newWorld(t)
	object := w.catalogueOf("formed", map[string][]string{"web": {"1.0.0"}})
	object.Spec.Addons[0].Versions[0].Template.FormSpec = []v1.FormField{{
		DisplayName: "Replicas", InternalName: "replicas", Type: v1.FormNumber, Default: &runtime.RawExtension{Raw: []byte(`"two"`)},
	}}
	expect.Create(w.t, w.master, object)
	w.start()
	w.expectCondition(object, v1.ConditionReady, "False", v1.ReasonInvalid)
}

// TestWrongRuleIsRefused holds the same for a rule of health that can't be evaluated.
func TestWrongRuleIsRefused(t *testing.T) {
	w := newWorld(t)
	object := w.catalogueOf("ruled", map[string][]string{"web": {"1.0.0"}})
	object.Spec.Addons[0].Versions[0].Template.Health = &v1.HealthCheck{
		Rules: []v1.HealthRule{{APIVersion: "v1", Kind: "ConfigMap", Healthy: "other.ready"}},
	}
	expect.Create(w.t, w.master, object)
	w.start()
	w.expectCondition(object, v1.ConditionReady, "False", v1.ReasonInvalid)
}

// AG01: TestWrongAccessIsRefused holds the same for a version that asks for Secrets of the seed.
func TestWrongAccessIsRefused(t *testing.T) {
	w := newWorld(t)
	object := w.catalogueOf("asking", map[string][]string{"web": {"1.0.0"}})
	object.Spec.Addons[0].Versions[0].Template.Access = []v1.Access{{
		Name: "hub", Rules: []v1.AccessRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}},
	}}
	expect.Create(w.t, w.master, object)
	w.start()
	w.expectCondition(object, v1.ConditionReady, "False", v1.ReasonInvalid)
}

// AG20: Red when a catalogue whose health rules cost much holds up another one, or is not told with reason and place: 400 KB of rules
// held all up for minutes.
func TestDearRulesHoldUpNoOtherCatalogue(t *testing.T) {
	w := newWorld(t)
	w.seed("remote", kubeconfigOf("seed"))
	dear := func(name, repeated, end string) *v1.AddonCatalogue {
		made := w.catalogueOf(name, map[string][]string{name: {"1.0.0"}})
		first, number := made.Spec.Addons[0].Versions[0], 0
		made.Spec.Addons[0].Versions = nil
		for minor := range 24 {
			version := *first.DeepCopy()
			version.Version, version.Template.Health = fmt.Sprintf("1.%d.0", minor), &v1.HealthCheck{}
			for range 16 {
				rule := v1.HealthRule{APIVersion: "v1", Kind: "ConfigMap"}
				for _, expression := range []*string{&rule.Healthy, &rule.Failed} {
					*expression, number = repeated+fmt.Sprintf(end, number), number+1
				}
				version.Template.Health.Rules = append(version.Template.Health.Rules, rule)
			}
			made.Spec.Addons[0].Versions = append(made.Spec.Addons[0].Versions, version)
		}
		expect.Create(w.t, w.master, made)
		return made
	}
	grows := dear("grows", "[[]]"+strings.Repeat(".map(a,[a,a])", 56), ".all(a,%d>0)")
	large := dear("large", strings.Repeat("self.a > 1 || ", 40), "self.b > %d")
	innocent := w.catalogueOf("innocent", map[string][]string{"web": {"1.0.0"}})
	expect.Create(w.t, w.master, innocent)
	w.start()
	w.expectVersions("seed", "web", "1.0.0")
	w.expectCondition(innocent, v1.ConditionReady, "True", v1.ReasonDistributed)
	for object, says := range map[*v1.AddonCatalogue]string{
		grows: `addon "grows" version "1.0.0": template.health.rules[0].healthy: at character 633: at most 8 of all`,
		large: `addon "large" version "1.7.0": template.health.rules: the rules of the catalogue have more than 128 KiB`,
	} {
		w.expectCondition(object, v1.ConditionReady, "False", v1.ReasonInvalid, says)
	}
}
