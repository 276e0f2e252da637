package api

import (
	"slices"
	"strings"
)

// healthRule is the beginning of a rule about the health of ConfigMaps, and healthRulePath its place in the schema.
const (
	healthRule     = "{apiVersion: v1, kind: ConfigMap, healthy: 'true'"
	healthRulePath = "spec.addons[].versions[].template.health.rules[]"
)

// bases are the objects that the cases change.
var bases = map[string]string{
	"AddonCatalogue": `
apiVersion: kubermatic.k8c.io/v1
kind: AddonCatalogue
metadata: {name: base}
spec:
  addons:
  - name: prometheus
    versions:
    - version: v1
      template: {method: go-template}
      source: {git: {remote: "https://git.example.com/addons.git"}}
`,
	"AddonInstallation": `
apiVersion: kubermatic.k8c.io/v1
kind: AddonInstallation
metadata: {name: base}
spec:
  addonRef: {name: prometheus}
  clusterName: team-a
  targetNamespace: monitoring
`,
	"AddonSet": setBase,
}

func rulesByKind() map[string][]rule {
	return map[string][]rule{
		"AddonCatalogue": slices.Concat(catalogueRules, addonRules, versionRules, accessRules(), sourceRules,
			gitRules("spec.addons[].versions[].source.git"), gitRules("spec.git")),
		"AddonInstallation": installationRules,
		"AddonSet":          setRules(),
	}
}

var catalogueRules = []rule{
	{
		at: "spec", kind: "cel: set either git or addons, not both: a git catalogue takes its add-ons from the repository",
		why:  "a catalogue has one origin",
		good: edits{"spec.addons": "", "spec.git": "{remote: 'https://git.example.com/a.git', ref: {branch: main}}"},
		bad:  edits{"spec.git": "{remote: 'https://git.example.com/a.git', ref: {branch: main}}"},
	},
	{
		at: "spec", kind: "cel: only Core catalogues may set template.clusterSecrets: remove it",
		why:  "whoever offers add-ons to users does not see the kubeconfigs of their clusters",
		good: edits{"spec.type": "Core", versionPath + "template.clusterSecrets": "true"},
		bad:  edits{versionPath + "template.clusterSecrets": "true"},
	},
	{
		at: "spec.type", kind: "enum", why: "there are two types",
		good: edits{"spec.type": "Core"}, bad: edits{"spec.type": "core"},
	},
	{
		at: "spec.type", kind: "cel: type can't be changed: delete the catalogue and create it again", update: true,
		why:  "a Custom catalogue that turns Core would reserve names behind everybody's back",
		good: edits{"spec.type": "Custom"}, bad: edits{"spec.type": "Core"},
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
		at: "spec.supportedBy", kind: "pattern", why: "tables and terminals show it",
		good: edits{"spec.supportedBy": "Plattform-Team München"}, bad: edits{"spec.supportedBy": `"two\nlines"`},
	},
	{
		at: "spec.git.interval", kind: "pattern", why: "what is no duration would break every reader of the kind",
		good: gitCatalogue("interval: 1h30m"), bad: gitCatalogue("interval: five minutes"),
	},
	{
		at: "spec.git.interval", kind: "cel: interval must be at least 10s", why: "git hosts count requests",
		good: gitCatalogue("interval: 10s"), bad: gitCatalogue("interval: 9.9s"),
	},
}

// gitCatalogue turns the base into a git catalogue with one more field.
func gitCatalogue(field string) edits {
	return edits{"spec.addons": "", "spec.git": "{remote: 'https://git.example.com/a.git', " + field + "}"}
}

const versionPath = "spec.addons.0.versions.0."

var addonRules = []rule{
	{
		at: "spec.addons[].name", kind: "pattern", why: "merged catalogues are named after add-ons",
		good: edits{"spec.addons.0.name": "node-exporter-2"}, bad: edits{"spec.addons.0.name": "OpenVPN"},
	},
	{
		at: "spec.addons[].targetNamespace", kind: "pattern", why: "namespaces are DNS labels",
		good: edits{"spec.addons.0.targetNamespace": "monitoring"}, bad: edits{"spec.addons.0.targetNamespace": "kube_system"},
	},
	{
		at: "spec.addons[].slot", kind: "enum", why: "there are four, and the rest",
		good: edits{"spec.addons.0.slot": "CNI"}, bad: edits{"spec.addons.0.slot": "Network"},
	},
	{
		at: "spec.addons[].documentationURL", kind: "pattern", why: "a dashboard makes a link of it",
		good: edits{"spec.addons.0.documentationURL": "https://example.com/docs#top"},
		bad:  edits{"spec.addons.0.documentationURL": "javascript:alert(1)"},
	},
	{
		at: "spec.addons[].supportedBy", kind: "pattern", why: "it reads in one direction",
		good: edits{"spec.addons.0.supportedBy": "Example Inc. (24/7)"}, bad: edits{"spec.addons.0.supportedBy": `"left\u202eright"`},
	},
	{
		at: "spec.addons[].versions[].version", kind: "pattern", why: "a version must not look like a range",
		good: edits{versionPath + "version": "v1.2.3-rc.1+build"}, bad: edits{versionPath + "version": "'>=1.2'"},
	},
	{
		at: "spec.addons[].versions[].constraints.k8sVersion", kind: noRange, why: "a bad range is refused, never read as all",
		good: edits{versionPath + "constraints": "{k8sVersion: '>= 1.34, < 1.38'}"},
		bad:  edits{versionPath + "constraints": "{k8sVersion: 'the latest'}"},
	},
	{
		at: "spec.addons[].versions[].constraints.k8sVersion", kind: noEnd, why: "half a range is no range",
		good: edits{versionPath + "constraints": "{k8sVersion: ' 1.2 '}"},
		bad:  edits{versionPath + "constraints": "{k8sVersion: '>= 1.37 <'}"},
	},
	{
		at: "spec.addons[].versions[].constraints.kkpVersion", kind: noRange, why: "a bad range is refused, never read as all",
		good: edits{versionPath + "constraints": "{kkpVersion: '>= 2.28.0-0'}"},
		bad:  edits{versionPath + "constraints": "{kkpVersion: '>= abc'}"},
	},
	{
		at: "spec.addons[].versions[].constraints.kkpVersion", kind: noEnd, why: "half a range is no range",
		good: edits{versionPath + "constraints": "{kkpVersion: '1.*'}"},
		bad:  edits{versionPath + "constraints": "{kkpVersion: '>= 2.28,'}"},
	},
}

// What the API server says of ranges, in words.
const (
	noRange = `cel: this is not a range of versions: write it like ">= 1.34, < 1.38" or "1.x"`
	noEnd   = `cel: a range ends with a version: write it like ">= 1.34, < 1.38" or "1.x"`
)

const chart = "{helm: {url: 'https://charts.example.com', chart: podinfo, version: 6.7.1}}"

var versionRules = []rule{
	{
		at: "spec.addons[].versions[].valuesFrom[].objectRef.path", kind: "pattern", why: "metadata is not for add-ons",
		good: edits{versionPath + "valuesFrom": "[{objectRef: {apiGroup: a.io, kind: A, name: a, path: status}}]"},
		bad:  edits{versionPath + "valuesFrom": "[{objectRef: {apiGroup: a.io, kind: A, name: a, path: metadata}}]"},
	},
	{
		at:   "spec.addons[].versions[]",
		kind: "cel: set both template and source, next to each other: source is not a field of template",
		why:  "a version has content or, in an available catalogue, has none",
		good: edits{versionPath + "template": "", versionPath + "source": ""}, bad: edits{versionPath + "source": ""},
	},
	{
		at: "spec.addons[].versions[]", kind: "cel: source.helm needs template.method helm", why: "a chart is no folder of manifests",
		good: edits{versionPath + "template": "{method: helm}", versionPath + "source": chart}, bad: edits{versionPath + "source": chart},
	},
	{
		at: "spec.addons[].versions[].template.method", kind: "enum", why: "there are two methods",
		good: edits{versionPath + "template": "{method: helm}"}, bad: edits{versionPath + "template": "{method: kustomize}"},
	},
	{
		at: "spec.addons[].versions[].template", kind: "cel: helm options need method helm", why: "options nobody reads mislead",
		good: edits{versionPath + "template": "{method: helm, helm: {disableHooks: true}}"},
		bad:  edits{versionPath + "template": "{method: go-template, helm: {disableHooks: true}}"},
	},
	{
		at: "spec.addons[].versions[].template.timeout", kind: "pattern", why: "what is no duration would break every reader of the kind",
		good: edits{versionPath + "template": "{method: helm, timeout: 90s}"},
		bad:  edits{versionPath + "template": "{method: helm, timeout: 1d}"},
	},
	{
		at: "spec.addons[].versions[].template.timeout", kind: "cel: timeout must be between 1s and 24h", why: "0 would never be healthy",
		good: edits{versionPath + "template": "{method: helm, timeout: 24h}"},
		bad:  edits{versionPath + "template": "{method: helm, timeout: 0s}"},
	},
	{
		at: "spec.addons[].versions[].template.crds.apply", kind: "enum", why: "three ways",
		good: edits{versionPath + "template": "{method: helm, crds: {apply: Create}}"},
		bad:  edits{versionPath + "template": "{method: helm, crds: {apply: Replace}}"},
	},
	{
		at: "spec.addons[].versions[].template.crds.remove", kind: "enum", why: "two ways",
		good: edits{versionPath + "template": "{method: helm, crds: {remove: Keep}}"},
		bad:  edits{versionPath + "template": "{method: helm, crds: {remove: Always}}"},
	},
	{
		at: "spec.addons[].versions[].template.onClusterDeletion", kind: "enum", why: "two ways",
		good: edits{versionPath + "template": "{method: helm, onClusterDeletion: Remove}"},
		bad:  edits{versionPath + "template": "{method: helm, onClusterDeletion: Delete}"},
	},
	{
		at: "spec.addons[].versions[].template.health.mode", kind: "enum", why: "four ways",
		good: edits{versionPath + "template": "{method: helm, health: {mode: None}}"},
		bad:  edits{versionPath + "template": "{method: helm, health: {mode: Pods}}"},
	},
	{
		at:   "spec.addons[].versions[].template.health",
		kind: "cel: rules need mode Workloads or Rules", why: "nobody would read them",
		good: edits{versionPath + "template": "{method: helm, health: {rules: [" + healthRule + "}]}}"},
		bad:  edits{versionPath + "template": "{method: helm, health: {mode: None, rules: [" + healthRule + "}]}}"},
	},
	{
		at: "spec.addons[].versions[].template.health", kind: "cel: lease needs mode Lease", why: "nobody would read it",
		good: edits{versionPath + "template": "{method: helm, health: {mode: Lease, lease: {name: agent.one}}}"},
		bad:  edits{versionPath + "template": "{method: helm, health: {lease: {name: agent}}}"},
	},
	{
		at: "spec.addons[].versions[].template.health", kind: "cel: mode Rules needs rules", why: "nothing would ever count",
		good: edits{versionPath + "template": "{method: helm, health: {mode: Rules, rules: [" + healthRule + "}]}}"},
		bad:  edits{versionPath + "template": "{method: helm, health: {mode: Rules}}"},
	},
	{
		at: "spec.addons[].versions[].template.health.lease.name", kind: "pattern", why: "Leases are DNS subdomains",
		good: edits{versionPath + "template": "{method: helm, health: {mode: Lease, lease: {name: a-1.b}}}"},
		bad:  edits{versionPath + "template": "{method: helm, health: {mode: Lease, lease: {name: ../b}}}"},
	},
	{
		at: "spec.addons[].versions[].template.health.lease.staleAfter", kind: "pattern", why: "what is no duration would break every reader of the kind",
		good: edits{versionPath + "template": "{method: helm, health: {mode: Lease, lease: {staleAfter: 90s}}}"},
		bad:  edits{versionPath + "template": "{method: helm, health: {mode: Lease, lease: {staleAfter: 1d}}}"},
	},
	{
		at: "spec.addons[].versions[].template.health.lease.staleAfter", kind: "cel: staleAfter must be between 30s and 1h", why: "each costs a read within half of it",
		good: edits{versionPath + "template": "{method: helm, health: {mode: Lease, lease: {staleAfter: 30s}}}"},
		bad:  edits{versionPath + "template": "{method: helm, health: {mode: Lease, lease: {staleAfter: 29s}}}"},
	},
	{
		at: healthRulePath, kind: "cel: rules can't read Secrets", why: "a rule tells of what it reads",
		good: edits{versionPath + "template": "{method: helm, health: {rules: [{apiVersion: example.com/v1, kind: Secret, healthy: 'true'}]}}"},
		bad:  edits{versionPath + "template": "{method: helm, health: {rules: [{apiVersion: v1, kind: Secret, healthy: 'true'}]}}"},
	},
	{
		at: healthRulePath, kind: "cel: namespace needs a name", why: "a rule is about one object, or about those of the add-on",
		good: edits{versionPath + "template": "{method: helm, health: {rules: [" + healthRule + ", name: a, namespace: b}]}}"},
		bad:  edits{versionPath + "template": "{method: helm, health: {rules: [" + healthRule + ", namespace: b}]}}"},
	},
	{
		at: healthRulePath + ".apiVersion", kind: "pattern", why: "it becomes part of a path",
		good: edits{versionPath + "template": "{method: helm, health: {rules: [{apiVersion: db.example.com/v1beta1, kind: A, healthy: 'true'}]}}"},
		bad:  edits{versionPath + "template": "{method: helm, health: {rules: [{apiVersion: a/b/v1, kind: A, healthy: 'true'}]}}"},
	},
	{
		at: healthRulePath + ".kind", kind: "pattern", why: "kinds are words",
		good: edits{versionPath + "template": "{method: helm, health: {rules: [{apiVersion: v1, kind: ConfigMap, healthy: 'true'}]}}"},
		bad:  edits{versionPath + "template": "{method: helm, health: {rules: [{apiVersion: v1, kind: 'Config Map', healthy: 'true'}]}}"},
	},
	{
		at: healthRulePath + ".name", kind: "pattern", why: "it becomes part of a path",
		good: edits{versionPath + "template": "{method: helm, health: {rules: [" + healthRule + ", name: 'system:a.b'}]}}"},
		bad:  edits{versionPath + "template": "{method: helm, health: {rules: [" + healthRule + ", name: a/b}]}}"},
	},
	{
		at: healthRulePath + ".namespace", kind: "pattern", why: "namespaces are DNS labels",
		good: edits{versionPath + "template": "{method: helm, health: {rules: [" + healthRule + ", name: a, namespace: b}]}}"},
		bad:  edits{versionPath + "template": "{method: helm, health: {rules: [" + healthRule + ", name: a, namespace: B}]}}"},
	},
	{
		at: "spec.addons[].versions[].template.helm.releaseName", kind: "pattern", why: "Helm refuses other names",
		good: edits{versionPath + "template": "{method: helm, helm: {releaseName: web-1}}"},
		bad:  edits{versionPath + "template": "{method: helm, helm: {releaseName: Web}}"},
	},
	{
		at: "spec.addons[].versions[].template.formSpec[].type", kind: "enum", why: "primary types only, as the proposal says",
		good: edits{versionPath + "template": "{method: helm, formSpec: [{displayName: A, internalName: a, type: select, options: [x]}]}"},
		bad:  edits{versionPath + "template": "{method: helm, formSpec: [{displayName: A, internalName: a, type: object}]}"},
	},
}

var sourceRules = []rule{
	{
		at: "spec.addons[].versions[].source", kind: "cel: set exactly one of git, docker and helm", why: "two sources in one version",
		good: edits{versionPath + "source": "{docker: {image: 'registry.example.com/addons:v1'}}"},
		bad:  edits{versionPath + "source": "{docker: {image: 'r.example.com/addons:v1'}, git: {remote: 'https://git.example.com/a.git'}}"},
	},
	{
		at: "spec.addons[].versions[].source.docker.image", kind: "pattern", why: "a digest is a whole sha256, and an image has no user part",
		good: edits{versionPath + "source": "{docker: {image: 'r.example.com:5000/a@sha256:" + strings.Repeat("0f", 32) + "'}}"},
		bad:  edits{versionPath + "source": "{docker: {image: 'user@r.example.com/a'}}"},
	},
	{
		at: "spec.addons[].versions[].source.helm.url", kind: "pattern", why: "https with an index, or oci; no user part",
		good: helm("oci://registry.example.com/charts", "podinfo"), bad: helm("https://user:secret@charts.example.com", "podinfo"),
	},
	{
		at: "spec.addons[].versions[].source.helm.chart", kind: "pattern", why: "a chart's name is no path",
		good: helm("https://charts.example.com", "pod-info"), bad: helm("https://charts.example.com", "../podinfo"),
	},
}

func helm(url, name string) edits {
	return edits{
		versionPath + "template": "{method: helm}",
		versionPath + "source":   "{helm: {url: '" + url + "', chart: '" + name + "', version: 1.0.0}}",
	}
}

// gitRules are those of a place that holds a git repository: a catalogue's, or a version's source.
func gitRules(at string) []rule {
	git := func(fields string) edits {
		if at == "spec.git" {
			return edits{"spec.addons": "", "spec.git": "{" + fields + "}"}
		}
		return edits{versionPath + "source": "{git: {" + fields + "}}"}
	}
	remote := "remote: 'https://git.example.com/a.git'"
	return []rule{
		{
			at: at + ".remote", kind: "pattern", why: "ssh may have a user, nobody may have a password, and file is no protocol",
			good: git("remote: 'ssh://git@git.example.com:2222/a.git'"), bad: git("remote: 'https://user:secret@git.example.com/a.git'"),
		},
		{
			at: at + ".remote", kind: "pattern", why: "a path of the controller's own disk is no source",
			good: git(remote), bad: git("remote: 'file:///etc'"),
		},
		{
			at: at + ".remote", kind: "pattern", why: "the short form is ssh; nothing that some program would read as an option",
			good: git("remote: 'git@git.example.com:team/a.git'"), bad: git("remote: 'git@-oProxyCommand=x:a.git'"),
		},
		{
			at: at + ".remote", kind: "pattern", why: "the path goes through the server's shell",
			good: git("remote: 'ssh://git.example.com/~team/a.git'"), bad: git("remote: \"ssh://git.example.com/a'b\""),
		},
		{
			at: at + ".ref", kind: "cel: set exactly one of branch, tag, commit and semver", why: "two answers to one question",
			good: git(remote + ", ref: {tag: v1}"), bad: git(remote + ", ref: {tag: v1, branch: main}"),
		},
		{
			at: at + ".ref.commit", kind: "pattern", why: "a short hash may come to mean another commit",
			good: git(remote + ", ref: {commit: " + strings.Repeat("0a", 20) + "}"), bad: git(remote + ", ref: {commit: 0a0a0a0}"),
		},
		{
			at: at + ".ref.semver", kind: noRange, why: "tags are chosen by a range",
			good: git(remote + ", ref: {semver: 1.x}"), bad: git(remote + ", ref: {semver: latest}"),
		},
		{
			at: at + ".ref.semver", kind: noEnd, why: "half a range is no range",
			good: git(remote + ", ref: {semver: '>= 1'}"), bad: git(remote + ", ref: {semver: '>= 1 ||'}"),
		},
	}
}

var installationRules = []rule{
	{
		at: "", kind: "cel: the name of an AddonInstallation has at most 63 characters", why: "the name stands in labels",
		good: edits{"metadata.name": strings.Repeat("a", 63)}, bad: edits{"metadata.name": strings.Repeat("a", 64)},
	},
	{
		at: "", kind: "cel: an installation can't depend on itself: remove its name from dependsOn", why: "it would wait for ever",
		good: edits{"spec.dependsOn": "[other]"}, bad: edits{"spec.dependsOn": "[other, base]"},
	},
	{
		at: "spec.addonRef.name", kind: "pattern", why: "add-ons are named by DNS labels",
		good: edits{"spec.addonRef.name": "openvpn"}, bad: edits{"spec.addonRef.name": "OpenVPN"},
	},
	{
		at: "spec.addonRef", kind: "cel: addonRef.name can't be changed: correct it if it is misspelt; for another add-on, delete the installation and create it again", update: true,
		why:  "what is installed is another add-on's",
		good: edits{"spec.addonRef.version": "'2'"}, bad: edits{"spec.addonRef.name": "openvpn"},
	},
	{
		at: "spec.addonRef.version", kind: `cel: this is neither a version nor a range: write it like "1.2.3", ">= 1.34, < 1.38" or "1.x"`, why: "exact, or a range that can be read",
		good: edits{"spec.addonRef.version": "'>=2 <3'"}, bad: edits{"spec.addonRef.version": "'>= two'"},
	},
	{
		at: "spec.addonRef", kind: "cel: digest needs an exact version: it identifies the content of that version", why: "of a range nobody knows which version's content it is",
		good: edits{"spec.addonRef": "{name: a, version: v1.2.0-x.1, digest: 'sha256:" + strings.Repeat("0a", 32) + "'}"},
		bad:  edits{"spec.addonRef": "{name: a, version: 1.x, digest: 'sha256:" + strings.Repeat("0a", 32) + "'}"},
	},
	{
		at: "spec.addonRef.digest", kind: "pattern", why: "it is a SHA-256",
		good: edits{"spec.addonRef": "{name: a, version: '1', digest: 'sha256:" + strings.Repeat("0a", 32) + "'}"},
		bad:  edits{"spec.addonRef": "{name: a, version: '1', digest: 'sha256:" + strings.Repeat("0A", 32) + "'}"},
	},
	{
		at: "spec", kind: "cel: releaseName can't be changed: delete the installation and create it again", update: true, why: "a release can't be renamed",
		good: edits{"spec.paused": "true"}, bad: edits{"spec.releaseName": "other"},
	},
	{
		at: "spec", kind: "cel: clusterName can't be changed: delete the installation and create it again", update: true,
		why:  "an installation stays with its cluster",
		good: edits{"spec.paused": "true"}, bad: edits{"spec.clusterName": "team-b"},
	},
	{
		at: "spec.clusterName", kind: "pattern", why: "Clusters are DNS labels or subdomains",
		good: edits{"spec.clusterName": "team.a-1"}, bad: edits{"spec.clusterName": "team_a"},
	},
	{
		at: "spec.releaseName", kind: "pattern", why: "Helm's limits",
		good: edits{"spec.releaseName": "prometheus-2"}, bad: edits{"spec.releaseName": "Prometheus"},
	},
	{
		at: "spec.coreAddon", kind: "cel: coreAddon can't be changed: only the core add-on controller creates core installations; to remove one permanently, remove it from ConfigMap custom-core-addons or change the setting of the Cluster that requests it", update: true,
		why:  "a user's installation must not get a core add-on's rights",
		good: edits{"spec.paused": "true"}, bad: edits{"spec.coreAddon": "true"},
	},
	{
		at: "spec.targetNamespace", kind: "pattern", why: "namespaces are DNS labels",
		good: edits{"spec.targetNamespace": "kube-system"}, bad: edits{"spec.targetNamespace": "kube_system"},
	},
	{
		at: "spec", kind: "cel: targetNamespace can't be changed: delete the installation and create it again", update: true,
		why:  "objects can't be moved",
		good: edits{"spec.createNamespace": "true"}, bad: edits{"spec.targetNamespace": "elsewhere"},
	},
	{
		at: "spec.reconcileStrategy", kind: "enum", why: "two ways",
		good: edits{"spec.reconcileStrategy": "Once"}, bad: edits{"spec.reconcileStrategy": "Never"},
	},
	{
		at: "spec.dependsOn[]", kind: "pattern", why: "it is the name of an installation",
		good: edits{"spec.dependsOn": "[a-1.b]"}, bad: edits{"spec.dependsOn": "[a_1]"},
	},
	{
		at: "spec.deletionPolicy", kind: "enum", why: "two ways",
		good: edits{"spec.deletionPolicy": "Orphan"}, bad: edits{"spec.deletionPolicy": "Keep"},
	},
	{
		at: "spec.valuesFrom[]", kind: "cel: set exactly one of secretRef, configMapRef, providerRef and objectRef", why: "an entry is one source",
		good: edits{"spec.valuesFrom": "[{secretRef: {name: a}}, {configMapRef: {name: b, key: c, optional: true}}]"},
		bad:  edits{"spec.valuesFrom": "[{secretRef: {name: a}, configMapRef: {name: b}}]"},
	},
	{
		at: "spec.valuesFrom[].objectRef.path", kind: "pattern", why: "metadata is not for add-ons",
		good: edits{"spec.valuesFrom": "[{objectRef: {apiGroup: a.io, kind: A, name: a, path: spec.b}}]"},
		bad:  edits{"spec.valuesFrom": "[{objectRef: {apiGroup: a.io, kind: A, name: a, path: metadata.b}}]"},
	},
	{
		at: "spec.valuesFrom[].secretRef", kind: "cel: targetPath needs key: name the key whose text goes there", why: "a path is for one text",
		good: edits{"spec.valuesFrom": "[{secretRef: {name: a, key: b, targetPath: c.d}}]"},
		bad:  edits{"spec.valuesFrom": "[{secretRef: {name: a, targetPath: c.d}}]"},
	},
	{
		at: "spec.valuesFrom[].configMapRef", kind: "cel: targetPath needs key: name the key whose text goes there", why: "a path is for one text",
		good: edits{"spec.valuesFrom": "[{configMapRef: {name: a, key: b, targetPath: c.d}}]"},
		bad:  edits{"spec.valuesFrom": "[{configMapRef: {name: a, targetPath: c.d}}]"},
	},
}
