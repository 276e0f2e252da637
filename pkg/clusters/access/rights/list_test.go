package rights

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

func policyRules(t *testing.T, text string) []rbacv1.PolicyRule {
	t.Helper()
	var rules []rbacv1.PolicyRule
	if err := yaml.UnmarshalStrict([]byte(text), &rules); err != nil {
		t.Fatal(err)
	}
	return rules
}

// AG02: What the platform does not list is told, the first of it; a list's wildcards, and its rules without names, cover.
func TestWhatThePlatformLists(t *testing.T) {
	const (
		policies = "{apiGroups: [policy.example.com], resources: [policies], verbs: [get, list]}"
		named    = `{apiGroups: [""], resources: [configmaps], resourceNames: [addon-web-a, addon-web-b], verbs: [get, patch]}`
		outbox   = `{apiGroups: [""], resources: [secrets], resourceNames: [addon-out-web], verbs: [get, update, patch]}`
	)
	for _, row := range []struct{ why, wanted, listed, says string }{
		{"nothing is wanted", "[]", "[]", ""},
		{"no list", "[" + policies + "]", "[]", `get policies of group "policy.example.com"`},
		{"the same", "[" + policies + "]", "[" + policies + "]", ""},
		{
			"by two rules of the list together", "[" + policies + "]",
			"[{apiGroups: [policy.example.com], resources: [policies], verbs: [list]}, {apiGroups: [policy.example.com], resources: [policies], verbs: [get]}]", "",
		},
		{"a verb less", "[" + policies + "]", "[{apiGroups: [policy.example.com], resources: [policies], verbs: [get, watch]}]", `list policies of group "policy.example.com"`},
		{"another group", "[" + policies + "]", "[{apiGroups: [example.com], resources: [policies], verbs: [get, list]}]", `get policies of group "policy.example.com"`},
		{"all groups", "[" + policies + "]", `[{apiGroups: ["*"], resources: [policies], verbs: [get, list]}]`, ""},
		{"all resources", "[" + policies + "]", `[{apiGroups: [policy.example.com], resources: ["*"], verbs: [get, list]}]`, ""},
		{"all verbs", "[" + policies + "]", `[{apiGroups: [policy.example.com], resources: [policies], verbs: ["*"]}]`, ""},
		{"all", "[" + policies + ", " + named + "]", `[{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]`, ""},
		{"a part of a name is no wildcard", "[" + policies + "]", `[{apiGroups: ["*.example.com"], resources: [policies], verbs: [get, list]}]`, `get policies of group "policy.example.com"`},
		{"paths are not kinds", "[" + policies + "]", `[{nonResourceURLs: ["*"], verbs: ["*"]}]`, `get policies of group "policy.example.com"`},
		{
			"a subresource is not in its resource", "[{apiGroups: [a.io], resources: [as/status], verbs: [patch]}]",
			"[{apiGroups: [a.io], resources: [as], verbs: [patch]}]", `patch as/status of group "a.io"`,
		},
		{
			"nor the resource in its subresource", "[{apiGroups: [a.io], resources: [as], verbs: [patch]}]",
			`[{apiGroups: [a.io], resources: [as/status, "*/scale"], verbs: [patch]}]`, `patch as of group "a.io"`,
		},
		{
			"a subresource of all", "[{apiGroups: [a.io], resources: [as/status], verbs: [patch]}]",
			`[{apiGroups: [a.io], resources: ["*/status"], verbs: [patch]}]`, "",
		},
		{"names that are listed", "[" + named + "]", "[" + named + "]", ""},
		{"names where all are listed", "[" + named + "]", `[{apiGroups: [""], resources: [configmaps], verbs: [get, patch]}]`, ""},
		{
			"all where names are listed", `[{apiGroups: [""], resources: [configmaps], verbs: [get]}]`, "[" + named + "]",
			"get configmaps of the core group",
		},
		{
			"a name more", "[" + named + "]", `[{apiGroups: [""], resources: [configmaps], resourceNames: [addon-web-a], verbs: [get, patch]}]`,
			`get configmaps of the core group, named "addon-web-b"`,
		},
		{
			"a listed name is no pattern", "[" + named + "]", `[{apiGroups: [""], resources: [configmaps], resourceNames: ["*", addon-web-, "addon-*"], verbs: [get, patch]}]`,
			`get configmaps of the core group, named "addon-web-a"`,
		},
		{
			"each name by a rule of its own", "[" + named + "]",
			`[{apiGroups: [""], resources: [configmaps], resourceNames: [addon-web-a], verbs: ["*"]}, {apiGroups: [""], resources: [configmaps], resourceNames: [addon-web-b], verbs: [get, patch]}]`, "",
		},
		{"a second rule", "[" + policies + ", " + named + "]", "[" + policies + "]", `get configmaps of the core group, named "addon-web-a"`},
		{"the outbox is ours to give", "[" + outbox + "]", "[]", ""},
		{"and nothing beside it", "[" + outbox + ", " + policies + "]", "[]", `get policies of group "policy.example.com"`},
		{
			"no other Secret is", `[{apiGroups: [""], resources: [secrets], resourceNames: [addon-access-web], verbs: [get, update, patch]}]`, "[]",
			`get secrets of the core group, named "addon-access-web"`,
		},
		{
			"nor one beside the outbox", `[{apiGroups: [""], resources: [secrets], resourceNames: [addon-out-web, b], verbs: [get, update, patch]}]`, "[]",
			`get secrets of the core group, named "addon-out-web"`,
		},
		{
			"nor another verb", `[{apiGroups: [""], resources: [secrets], resourceNames: [addon-out-web], verbs: [get, update, delete]}]`, "[]",
			`get secrets of the core group, named "addon-out-web"`,
		},
		{
			"nor another kind", `[{apiGroups: [""], resources: [configmaps], resourceNames: [addon-out-web], verbs: [get, update, patch]}]`, "[]",
			`get configmaps of the core group, named "addon-out-web"`,
		},
		{
			"nor another group", `[{apiGroups: [a.io], resources: [secrets], resourceNames: [addon-out-web], verbs: [get, update, patch]}]`, "[]",
			`get secrets of group "a.io", named "addon-out-web"`,
		},
		{
			"nor a path", `[{apiGroups: [""], resources: [secrets], resourceNames: [addon-out-web], verbs: [get, update, patch], nonResourceURLs: [/metrics]}]`, "[]",
			`get secrets of the core group, named "addon-out-web"`,
		},
	} {
		t.Run(row.why, func(t *testing.T) {
			if says := Uncovered(policyRules(t, row.wanted), policyRules(t, row.listed)); says != row.says {
				t.Errorf("it says %q and not %q", says, row.says)
			}
		})
	}
	if says := Uncovered(policyRules(t, "[{nonResourceURLs: [/metrics], verbs: [get]}]"), nil); says != "get /metrics" {
		t.Errorf("of a path it says %q", says)
	}
}
