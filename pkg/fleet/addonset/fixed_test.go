package addonset_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
)

// Red when a slip in the name of an add-on is told as a field that can't be changed alone, when another add-on is taken for a slip, when a
// message does not say what to do, or names another field than the one that differs.
func TestWhatAnItemCantBecome(t *testing.T) {
	is := func(addon, namespace, release string) addonset.Fixed {
		return addonset.Fixed{Addon: addon, TargetNamespace: namespace, ReleaseName: release}
	}
	was := is("podinfo", "web", "")
	for _, test := range []struct {
		why    string
		wanted addonset.Fixed
		known  bool
		reason string
		want   string
	}{
		{"a letter is missing", is("podinf", "web", ""), false, v1.ReasonAddonUnknown,
			`no catalogue has add-on "podinf": did you mean "podinfo"? Installation "web" has add-on "podinfo", which can't be changed: for another `},
		{"letters are swapped", is("pdoinfo", "web", ""), false, v1.ReasonAddonUnknown, `no catalogue has add-on "pdoinfo": did you mean "podinfo"?`},
		{"a letter too many", is("podinfos", "web", ""), false, v1.ReasonAddonUnknown, `no catalogue has add-on "podinfos": did you mean "podinfo"?`},
		{"another letter", is("podimfo", "web", ""), false, v1.ReasonAddonUnknown, `no catalogue has add-on "podimfo": did you mean "podinfo"?`},
		{"a dash", is("pod-info", "web", ""), false, v1.ReasonAddonUnknown, `no catalogue has add-on "pod-info": did you mean "podinfo"?`},
		{"a name like no other", is("grafana", "web", ""), false, v1.ReasonAddonUnknown, `no catalogue has add-on "grafana". Installation "web" has`},
		{"another add-on", is("grafana", "web", ""), true, v1.ReasonImmutableField,
			`addonRef.name of installation "web" can't be changed from "podinfo" to "grafana": undo the change, or give the item another name`},
		{"another add-on with a similar name", is("podinfo2", "web", ""), true, v1.ReasonImmutableField, `from "podinfo" to "podinfo2"`},
		{"another namespace", is("podinfo", "wbe", ""), true, v1.ReasonImmutableField, `targetNamespace of installation "web" can't be changed from "web" to "wbe"`},
		{"another release", is("podinfo", "web", "other"), true, v1.ReasonImmutableField, `releaseName of installation "web" can't be changed from "" to "other"`},
		{"another namespace, of an add-on that left the catalogues", is("podinfo", "wbe", ""), false, v1.ReasonImmutableField, "targetNamespace"},
	} {
		reason, message := addonset.CannotChange("web", was, test.wanted, test.known)
		if reason != test.reason || !strings.Contains(message, test.want) {
			t.Errorf("%s: %s: %s", test.why, reason, message)
		}
		if !strings.Contains(message, "give the item another name") {
			t.Errorf("%s: it does not say what to do: %s", test.why, message)
		}
	}
}

// Red when an edit that drops a source of values is no warning, for any kind of source, or when one that keeps it is.
func TestDroppedSourcesOfValuesAreWarnedOf(t *testing.T) {
	key := &v1.KeyReference{Name: "x"}
	sources := map[string]v1.AddonSetItem{
		"values":                  {Values: &runtime.RawExtension{Raw: []byte(`{"a":1}`)}},
		"valuesFrom.secretRef":    {ValuesFrom: []v1.ValuesSource{{SecretRef: key}}},
		"valuesFrom.configMapRef": {ValuesFrom: []v1.ValuesSource{{ConfigMapRef: key}}},
		"valuesFrom.providerRef":  {ValuesFrom: []v1.ValuesSource{{ProviderRef: &v1.ProviderReference{Name: "x"}}}},
		"valuesFrom.objectRef":    {ValuesFrom: []v1.ValuesSource{{ObjectRef: &v1.ObjectReference{Name: "x"}}}},
		"valuesTemplate":          {ValuesTemplate: "a: 1"},
		"platformSecretRef":       {PlatformSecretRef: &v1.PlatformSecretReference{Name: "x"}},
	}
	setOf := func(item v1.AddonSetItem) *v1.AddonSet {
		item.Name = "web"
		made := &v1.AddonSet{Spec: v1.AddonSetSpec{Addons: []v1.AddonSetItem{item}}}
		made.Status.Counts = &v1.ClusterCounts{Selected: 1}
		return made
	}
	for name, item := range sources {
		dropped := addonset.ChangedSources(setOf(item), setOf(v1.AddonSetItem{}))
		if len(dropped) != 1 || !strings.Contains(dropped[0], "no longer come from "+name+", but from no source of the set") {
			t.Errorf("%s is dropped: %q", name, dropped)
		}
		if kept := addonset.ChangedSources(setOf(item), setOf(item)); len(kept) > 0 {
			t.Errorf("%s is kept: %q", name, kept)
		}
	}
}
