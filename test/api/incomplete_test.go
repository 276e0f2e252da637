package api

import (
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// incompleteSets are edits of setBase that leave out what is required, leave it empty, or name twice what is there once. The schema has no
// rules of its own for them: "" takes a field away.
var incompleteSets = []struct {
	why     string
	changed edits
	says    string
}{
	{"all clusters are meant by {}, never by nothing", edits{"spec.clusterSelector": ""}, "spec.clusterSelector: Required value"},
	{"an override is for some clusters", edits{"spec.overrides.0.clusterSelector": ""}, "spec.overrides[0].clusterSelector: Required value"},
	{"so is a group", edits{groupPath + "clusterSelector": ""}, "spec.rollout.groups[0].clusterSelector: Required value"},
	{"an override adds values", edits{"spec.overrides.0.values": ""}, "spec.overrides[0].values: Required value"},
	{"a Secret has a name", edits{itemPath + "platformSecretRef": "{key: a}"}, "spec.addons[0].platformSecretRef.name: Required value"},
	{"a name is not empty", edits{itemPath + "platformSecretRef": "{name: ''}"}, "spec.addons[0].platformSecretRef.name: Invalid value"},
	{"an item is known by its name", edits{
		"spec.addons": "[" + webItem("1.x") + ", " + webItem("2.x") + "]",
	}, "spec.addons[1]: Duplicate value"},
	{"so is a group in approvals", edits{
		"spec.rollout.groups": "[{name: canary, clusterSelector: {}}, {name: canary, clusterSelector: {matchLabels: {ring: '0'}}}]",
	}, "spec.rollout.groups[1]: Duplicate value"},
	{"an item waits for another once", edits{itemPath + "dependsOn": "[crds, crds]"}, "spec.addons[0].dependsOn[1]: Duplicate value"},
	{"a permission is given once", edits{itemPath + "allow": "[Adopt, Adopt]"}, "spec.addons[0].allow[1]: Duplicate value"},
}

func webItem(version string) string {
	return "{name: web, addonRef: {name: web, version: " + version + "}, targetNamespace: web}"
}

// A set without selector would be on every cluster, and of two items of one name nobody knows which is meant. Red when the API server takes
// an AddonSet that leaves out what is required, leaves a name empty, or names something twice.
func TestIncompleteSetsAreRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, config *rest.Config) {
		api, base := newObjects(t, config), parse(t, setBase)
		if err := api.try(t.Context(), base); err != nil {
			t.Fatalf("refused although it is right: %v", err)
		}
		for _, test := range incompleteSets {
			err := api.try(t.Context(), test.changed.on(t, base))
			switch {
			case err == nil:
				t.Errorf("%s: accepted although it is wrong", test.why)
			case !strings.Contains(err.Error(), test.says):
				t.Errorf("%s: the answer does not say %q: %v", test.why, test.says, err)
			}
		}
	})
}
