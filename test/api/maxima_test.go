package api

import (
	"fmt"
	"slices"
	"strings"
)

// setMaxima are how long the lists and texts of an AddonSet may be: one of that length, and one that is longer by one.
func setMaxima() []rule {
	return slices.Concat(listMaxima(), nameMaxima(), sourceMaxima(), textMaxima())
}

// most makes the rule of one maximum; of gives edits with a list or text of a length.
func most(at, kind string, number int, of func(length int) edits) rule {
	return rule{
		at: at, kind: fmt.Sprintf("%s %d", kind, number), why: "an object is to stay small",
		good: of(number), bad: of(number + 1),
	}
}

func listMaxima() []rule {
	// each entry is a format that takes its number.
	list := func(path, entry string) func(int) edits {
		return func(length int) edits {
			var all []string
			for i := range length {
				all = append(all, fmt.Sprintf(entry, i))
			}
			return edits{path: "[" + strings.Join(all, ", ") + "]"}
		}
	}
	return []rule{
		most("spec.addons", "maxItems", 64, list("spec.addons", "{name: a%d, addonRef: {name: web}, targetNamespace: web}")),
		most("spec.overrides", "maxItems", 64, list("spec.overrides", "{clusterSelector: {}, addon: prometheus, values: {replicas: %d}}")),
		most("spec.rollout.groups", "maxItems", 16, list("spec.rollout.groups", "{name: g%d, clusterSelector: {}}")),
		most("spec.addons[].dependsOn", "maxItems", 16, list(itemPath+"dependsOn", "a%d")),
		most("spec.addons[].valuesFrom", "maxItems", 16, list(itemPath+"valuesFrom", "{secretRef: {name: a%d}}")),
		most("spec.addons[].allow", "maxItems", 3, func(length int) edits {
			all := []string{"Adopt", "Downgrade", "Prune", "Adopt"} // there are no more words
			return edits{itemPath + "allow": "[" + strings.Join(all[:length], ", ") + "]"}
		}),
	}
}

func nameMaxima() []rule {
	name := func(path string) func(int) edits {
		return func(length int) edits { return edits{path: strings.Repeat("a", length)} }
	}
	return []rule{
		most("spec.addons[].name", "maxLength", 63, name(itemPath+"name")),
		most("spec.addons[].addonRef.name", "maxLength", 63, name(itemPath+"addonRef.name")),
		most("spec.addons[].targetNamespace", "maxLength", 63, name(itemPath+"targetNamespace")),
		most("spec.addons[].releaseName", "maxLength", 53, name(itemPath+"releaseName")),
		most("spec.addons[].dependsOn[]", "maxLength", 63, func(length int) edits {
			return edits{itemPath + "dependsOn": "[" + strings.Repeat("a", length) + "]"}
		}),
		most("spec.overrides[].addon", "maxLength", 63, name("spec.overrides.0.addon")),
		most("spec.rollout.groups[].name", "maxLength", 63, name(groupPath+"name")),
	}
}

// sourceMaxima are those of references to values.
func sourceMaxima() []rule {
	entry := func(path, format string) func(int) edits {
		return func(length int) edits { return edits{path: fmt.Sprintf(format, strings.Repeat("a", length))} }
	}
	const from = itemPath + "valuesFrom"
	made := []rule{
		most("spec.addons[].platformSecretRef.name", "maxLength", 253, entry(itemPath+"platformSecretRef", "{name: %s}")),
		most("spec.addons[].platformSecretRef.key", "maxLength", 253, entry(itemPath+"platformSecretRef", "{name: a, key: %s}")),
		most("spec.addons[].valuesFrom[].providerRef.name", "maxLength", 253,
			entry(from, "[{providerRef: {apiGroup: example.com, kind: Store, name: %s}}]")),
		most("spec.addons[].valuesFrom[].providerRef.kind", "maxLength", 63,
			entry(from, "[{providerRef: {apiGroup: example.com, kind: %s, name: a}}]")),
		most("spec.addons[].valuesFrom[].providerRef.apiGroup", "maxLength", 253,
			entry(from, "[{providerRef: {apiGroup: %s, kind: Store, name: a}}]")),
	}
	for field, limit := range map[string]int{"apiGroup": 253, "kind": 63, "name": 253, "path": 512, "targetPath": 512} {
		made = append(made, most("spec.addons[].valuesFrom[].objectRef."+field, "maxLength", limit, func(length int) edits {
			ref := map[string]string{"apiGroup": "a.io", "kind": "A", "name": "a"}
			if ref[field] = strings.Repeat("a", length); field == "path" {
				ref[field] = "spec." + strings.Repeat("a", length-len("spec."))
			}
			var fields []string
			for key, value := range ref {
				fields = append(fields, key+": "+value)
			}
			return edits{from: "[{objectRef: {" + strings.Join(fields, ", ") + "}}]"}
		}))
	}
	for _, kind := range []string{"secretRef", "configMapRef"} {
		made = append(made,
			most("spec.addons[].valuesFrom[]."+kind+".name", "maxLength", 253, entry(from, "[{"+kind+": {name: %s}}]")),
			most("spec.addons[].valuesFrom[]."+kind+".key", "maxLength", 253, entry(from, "[{"+kind+": {name: a, key: %s}}]")),
			most("spec.addons[].valuesFrom[]."+kind+".targetPath", "maxLength", 512, entry(from, "[{"+kind+": {name: a, key: b, targetPath: %s}}]")))
	}
	return made
}

func textMaxima() []rule {
	digest := most("spec.addons[].addonRef.digest", "maxLength", 71, func(length int) edits {
		return edits{itemPath + "addonRef": "{name: web, version: 1.0.0, digest: 'sha256:" + strings.Repeat("a", length-len("sha256:")) + "'}"}
	})
	digest.good = edits{itemPath + "addonRef": "{name: web, version: 1.0.0}"} // a set has none
	made := []rule{
		digest,
		most("spec.addons[].addonRef.version", "maxLength", 256, func(length int) edits {
			return edits{itemPath + "addonRef.version": "1.0.0-" + strings.Repeat("a", length-len("1.0.0-"))}
		}),
		most("spec.addons[].valuesTemplate", "maxLength", 65536, func(length int) edits {
			return edits{itemPath + "valuesTemplate": strings.Repeat("a", length)}
		}),
	}
	for _, field := range []string{"k8sVersion", "kkpVersion"} {
		made = append(made, most("spec.constraints."+field, "maxLength", 256, func(length int) edits {
			return edits{"spec.constraints": "{" + field + ": '" + strings.Repeat(" ", length-len("1.2")) + "1.2'}"}
		}))
	}
	for _, place := range []string{"spec.rollout", "spec.rollout.groups[]"} {
		for _, field := range []string{"soak", "progressDeadline"} {
			made = append(made, most(place+"."+field, "maxLength", 16, func(length int) edits {
				return edits{at(place) + "." + field: "00001h00001m" + strings.Repeat("0", length-14) + "1s"}
			}))
		}
	}
	return made
}
