package distributor_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// TestWrongFormIsRefused holds that what admission refuses is refused without it too: the schema
// lets such a form in.
func TestWrongFormIsRefused(t *testing.T) {
	w := newWorld(t)
	object := w.catalogueOf("formed", map[string][]string{"web": {"1.0.0"}})
	object.Spec.Addons[0].Versions[0].Template.FormSpec = []v1.FormField{{
		DisplayName: "Replicas", InternalName: "replicas", Type: v1.FormNumber, Default: &runtime.RawExtension{Raw: []byte(`"two"`)},
	}}
	w.create(w.master, object)
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
	w.create(w.master, object)
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
	w.create(w.master, object)
	w.start()
	w.expectCondition(object, v1.ConditionReady, "False", v1.ReasonInvalid)
}
