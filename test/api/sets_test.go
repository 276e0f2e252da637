package api

import (
	"fmt"
	"slices"
	"strings"
)

// setBase is the AddonSet that the cases change.
const setBase = `
apiVersion: kubermatic.k8c.io/v1
kind: AddonSet
metadata: {name: base}
spec:
  clusterSelector: {matchLabels: {ring: "0"}}
  addons:
  - name: prometheus
    addonRef: {name: prometheus, version: 2.x}
    targetNamespace: monitoring
  overrides:
  - {clusterSelector: {}, addon: prometheus, values: {replicas: 1}}
  rollout:
    groups:
    - name: canary
      clusterSelector: {}
`

func setRules() []rule {
	return slices.Concat(setTopRules, itemRules, setMaxima(), paceRules("spec.rollout"), paceRules("spec.rollout.groups[]"),
		selectorRules("spec.clusterSelector"), selectorRules("spec.overrides[].clusterSelector"),
		selectorRules("spec.rollout.groups[].clusterSelector"))
}

// core turns the base into a set of type Core, with one more field.
func core(path, text string) edits {
	changed := edits{"spec.type": "Core", "spec.addons": "", "spec.overrides": "", "spec.clusterSelector": "{}"}
	if path != "" {
		changed[path] = text
	}
	return changed
}

const (
	itemPath  = "spec.addons.0."
	groupPath = "spec.rollout.groups.0."
)

var setTopRules = []rule{
	{
		at: "", kind: "cel: the name of an AddonSet has at most 63 characters", why: "the name stands in labels",
		good: edits{"metadata.name": strings.Repeat("a", 63)}, bad: edits{"metadata.name": strings.Repeat("a", 64)},
	},
	{
		at: "spec", kind: "cel: a set of type Core has no addons, overrides and removal: core add-ons come from rules and the custom core list",
		why: "it would not be known which of them counts", good: core("", ""), bad: core("spec.removal", "Delete"),
	},
	{
		at: "spec", kind: "cel: a set of type Core has no addons, overrides and removal: core add-ons come from rules and the custom core list",
		why: "core add-ons are listed elsewhere", good: core("", ""),
		bad: core("spec.addons", "[{name: web, addonRef: {name: web}, targetNamespace: web}]"),
	},
	{
		at: "spec", kind: "cel: a set of type Core has no addons, overrides and removal: core add-ons come from rules and the custom core list",
		why: "there is no item to override", good: core("", ""),
		bad: core("spec.overrides", "[{clusterSelector: {}, addon: web, values: {replicas: 1}}]"),
	},
	{
		at: "spec", kind: "cel: a set of type Custom has at least one item in addons", why: "an empty list is a mistake",
		good: edits{"spec.paused": "true"}, bad: edits{"spec.addons": "[]", "spec.overrides": ""},
	},
	{
		at: "spec", kind: "cel: the clusterSelector of a set of type Core is {}: core add-ons are on every cluster",
		why: "a cluster in no wave would get everything at once", good: core("", ""),
		bad: core("spec.clusterSelector", "{matchExpressions: [{key: ring, operator: Exists}]}"),
	},
	{
		at: "spec", kind: "cel: the clusterSelector of a set of type Core is {}: core add-ons are on every cluster",
		why: "a cluster in no wave would get everything at once", good: core("", ""),
		bad: core("spec.clusterSelector", "{matchLabels: {ring: '0'}}"),
	},
	{
		at: "spec.type", kind: "enum", why: "two types", good: edits{"spec.type": "Custom"}, bad: edits{"spec.type": "core"},
	},
	{
		at: "spec.type", kind: "cel: type can't be changed: delete the set and create another", update: true,
		why: "what a set made is not what another type makes", good: edits{"spec.type": "Custom"}, bad: core("", ""),
	},
	{
		at: "spec.priority", kind: "minimum", why: "0 is the lowest priority",
		good: edits{"spec.priority": "0"}, bad: edits{"spec.priority": "-1"},
	},
	{
		at: "spec.priority", kind: "maximum", why: "1000 is the highest priority",
		good: edits{"spec.priority": "1000"}, bad: edits{"spec.priority": "1001"},
	},
	{
		at: "spec.removal", kind: "enum", why: "three ways",
		good: edits{"spec.removal": "Release"}, bad: edits{"spec.removal": "Keep"},
	},
	{
		at: "spec.constraints.k8sVersion", kind: noRange, why: "a bad range is refused, never read as all",
		good: edits{"spec.constraints": "{k8sVersion: ~1.37}"}, bad: edits{"spec.constraints": "{k8sVersion: the latest}"},
	},
	{
		at: "spec.constraints.k8sVersion", kind: noEnd, why: "half a range is no range",
		good: edits{"spec.constraints": "{k8sVersion: 1.37.x}"}, bad: edits{"spec.constraints": "{k8sVersion: '>= 1.37 <'}"},
	},
	{
		at: "spec.constraints.kkpVersion", kind: noRange, why: "a bad range is refused, never read as all",
		good: edits{"spec.constraints": "{kkpVersion: '>= 2.30'}"}, bad: edits{"spec.constraints": "{kkpVersion: '>= abc'}"},
	},
	{
		at: "spec.constraints.kkpVersion", kind: noEnd, why: "half a range is no range",
		good: edits{"spec.constraints": "{kkpVersion: '2.30 - 2.31'}"}, bad: edits{"spec.constraints": "{kkpVersion: '>= 2.28,'}"},
	},
	{
		at: "spec.overrides[].addon", kind: "pattern", why: "items are named by DNS labels",
		good: edits{"spec.overrides.0.addon": "other"}, bad: edits{"spec.overrides.0.addon": "Other"},
	},
	{
		at: "spec.rollout.groups[].name", kind: "pattern", why: "the name stands in an annotation",
		good: edits{groupPath + "name": "ring-0"}, bad: edits{groupPath + "name": "ring/0"},
	},
	{
		at: "spec.rollout.groups[].name", kind: "cel: rest is the name of the last group, of all clusters that no group selects",
		why: "the name is taken", good: edits{groupPath + "name": "others"}, bad: edits{groupPath + "name": "rest"},
	},
	{
		at: "spec.rollout.groups[].start", kind: "enum", why: "two ways",
		good: edits{groupPath + "start": "Approved"}, bad: edits{groupPath + "start": "Manual"},
	},
}

var itemRules = []rule{
	{
		at: "spec.addons[].name", kind: "pattern", why: "installations are named so",
		good: edits{itemPath + "name": "web-2"}, bad: edits{itemPath + "name": "web_2"},
	},
	{
		at: "spec.addons[].addonRef", kind: "cel: addonRef.digest is set by the controller, for each cluster: remove it", why: "content differs by cluster",
		good: edits{itemPath + "addonRef": "{name: web}"}, bad: edits{itemPath + "addonRef": "{name: web, version: 1.0.0, digest: 'sha256:0a'}"},
	},
	{
		at: "spec.addons[].addonRef", kind: "cel: digest needs an exact version: it identifies the content of that version",
		why:  "of a range nobody knows which version's content it is",
		good: edits{itemPath + "addonRef": "{name: web, version: 1.0.0}"},
		bad:  edits{itemPath + "addonRef": "{name: web, version: 1.x, digest: 'sha256:" + strings.Repeat("0a", 32) + "'}"},
	},
	{
		at: "spec.addons[].addonRef.digest", kind: "pattern", why: "content is named by its SHA-256",
		good: edits{itemPath + "addonRef": "{name: web, version: 1.0.0}"},
		bad:  edits{itemPath + "addonRef": "{name: web, version: 1.0.0, digest: '0a'}"},
	},
	{
		at: "spec.addons[].addonRef.name", kind: "pattern", why: "add-ons are named by DNS labels",
		good: edits{itemPath + "addonRef.name": "openvpn"}, bad: edits{itemPath + "addonRef.name": "OpenVPN"},
	},
	{
		at: "spec.addons[].addonRef.version", kind: `cel: this is neither a version nor a range: write it like "1.2.3", ">= 1.34, < 1.38" or "1.x"`,
		why:  "exact, or a range that can be read",
		good: edits{itemPath + "addonRef.version": "'>=2 <3'"}, bad: edits{itemPath + "addonRef.version": "'>= two'"},
	},
	{
		at: "spec.addons[].targetNamespace", kind: "pattern", why: "namespaces are DNS labels",
		good: edits{itemPath + "targetNamespace": "kube-system"}, bad: edits{itemPath + "targetNamespace": "kube_system"},
	},
	{
		at: "spec.addons[].releaseName", kind: "pattern", why: "Helm takes no other names",
		good: edits{itemPath + "releaseName": "web.v2"}, bad: edits{itemPath + "releaseName": "Web"},
	},
	{
		at: "spec.addons[].valuesFrom[]", kind: "cel: set exactly one of secretRef, configMapRef, providerRef and objectRef", why: "an entry is one source",
		good: edits{itemPath + "valuesFrom": "[{secretRef: {name: $(cluster)-values}}]"},
		bad:  edits{itemPath + "valuesFrom": "[{secretRef: {name: a}, configMapRef: {name: b}}]"},
	},
	{
		at: "spec.addons[].valuesFrom[].objectRef.path", kind: "pattern", why: "metadata is not for add-ons",
		good: edits{itemPath + "valuesFrom": "[{objectRef: {apiGroup: a.io, kind: A, name: a, path: data}}]"},
		bad:  edits{itemPath + "valuesFrom": "[{objectRef: {apiGroup: a.io, kind: A, name: a, path: specs}}]"},
	},
	{
		at: "spec.addons[].valuesFrom[].secretRef", kind: "cel: targetPath needs key: name the key whose text goes there", why: "a path is for one text",
		good: edits{itemPath + "valuesFrom": "[{secretRef: {name: a, key: b, targetPath: c.d}}]"},
		bad:  edits{itemPath + "valuesFrom": "[{secretRef: {name: a, targetPath: c.d}}]"},
	},
	{
		at: "spec.addons[].valuesFrom[].configMapRef", kind: "cel: targetPath needs key: name the key whose text goes there", why: "a path is for one text",
		good: edits{itemPath + "valuesFrom": "[{configMapRef: {name: a, key: b, targetPath: c.d}}]"},
		bad:  edits{itemPath + "valuesFrom": "[{configMapRef: {name: a, targetPath: c.d}}]"},
	},
	{
		at: "spec.addons[].reconcileStrategy", kind: "enum", why: "two ways",
		good: edits{itemPath + "reconcileStrategy": "Once"}, bad: edits{itemPath + "reconcileStrategy": "Never"},
	},
	{
		at: "spec.addons[].dependsOn[]", kind: "pattern", why: "items are named by DNS labels",
		good: edits{itemPath + "dependsOn": "[crds]"}, bad: edits{itemPath + "dependsOn": "[CRDs]"},
	},
	{
		at: "spec.addons[].allow[]", kind: "enum", why: "three permissions",
		good: edits{itemPath + "allow": "[Adopt, Downgrade, Prune]"}, bad: edits{itemPath + "allow": "[Everything]"},
	},
}

// at is where edits find a place of the schema.
func at(place string) string { return strings.ReplaceAll(place, "[]", ".0") }

// paceRules are those of a rollout, and of each group.
func paceRules(place string) []rule {
	set := func(field, text string) edits { return edits{at(place) + "." + field: text} }
	return []rule{
		{
			at: place + ".maxConcurrency", kind: "pattern", why: "0% would never end",
			good: set("maxConcurrency", "1%"), bad: set("maxConcurrency", "0%"),
		},
		{
			at: place + ".maxConcurrency", kind: "cel: maxConcurrency is a number from 1 to 1000000, or a percentage from 1% to 100%",
			why: "0 would never end", good: set("maxConcurrency", "1"), bad: set("maxConcurrency", "0"),
		},
		{
			at: place + ".maxFailures", kind: "pattern", why: "more than all is a mistake",
			good: set("maxFailures", "100%"), bad: set("maxFailures", "101%"),
		},
		{
			at: place + ".maxFailures", kind: "cel: maxFailures is a number from 0 to 1000000, or a percentage from 1% to 100%",
			why: "fewer than none is a mistake", good: set("maxFailures", "0"), bad: set("maxFailures", "-1"),
		},
		{
			at: place + ".soak", kind: "pattern", why: "what is no duration would break every reader of the kind",
			good: set("soak", "0s"), bad: set("soak", "an hour"),
		},
		{
			at: place + ".soak", kind: "cel: soak is at most 168h", why: "a rollout has to end",
			good: set("soak", "168h"), bad: set("soak", "168h1s"),
		},
		{
			at: place + ".progressDeadline", kind: "pattern", why: "what is no duration would break every reader of the kind",
			good: set("progressDeadline", "1h30m"), bad: set("progressDeadline", "half an hour"),
		},
		{
			at: place + ".progressDeadline", kind: "cel: progressDeadline must be between 1s and 168h", why: "nothing is Ready at once",
			good: set("progressDeadline", "1s"), bad: set("progressDeadline", "0s"),
		},
	}
}

func selectorRules(place string) []rule {
	const kind = "cel: a selector has at most 32 matchLabels and 32 matchExpressions"
	// each entry is a format that takes its number.
	selector := func(format, entry string, count int) edits {
		var all []string
		for i := range count {
			all = append(all, fmt.Sprintf(entry, i))
		}
		return edits{at(place): fmt.Sprintf(format, strings.Join(all, ", "))}
	}
	labels := func(count int) edits { return selector("{matchLabels: {%s}}", "k%d: v", count) }
	expressions := func(count int) edits {
		return selector("{matchExpressions: [%s]}", "{key: k%d, operator: Exists}", count)
	}
	return []rule{
		{at: place, kind: kind, why: "it is tried for every cluster", good: labels(32), bad: labels(33)},
		{at: place, kind: kind, why: "these are tried for every cluster too", good: expressions(32), bad: expressions(33)},
	}
}
