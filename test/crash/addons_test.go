package crash_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// The add-on of go-template stories. Its names are the installation's own, so that many can stand in one cluster.
const (
	probeDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: 'probes.{{ .Variables.name }}.crash.example'}
spec:
  group: '{{ .Variables.name }}.crash.example'
  scope: Namespaced
  names: {kind: Probe, listKind: ProbeList, plural: probes, singular: probe}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {value: {type: string}}}
`
	probeResource = `apiVersion: '{{ .Variables.name }}.crash.example/v1'
kind: Probe
metadata: {name: probe}
spec: {value: VALUE}
`
	probeSettings = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {value: VALUE}
`
	probeDropped = `apiVersion: v1
kind: ConfigMap
metadata: {name: dropped}
`
	probeDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: worker}
spec:
  replicas: 0
  selector: {matchLabels: {app: worker}}
  template:
    metadata: {labels: {app: worker}}
    spec: {containers: [{name: worker, image: 'registry.example/worker:VALUE'}]}
`
	webAccount = `apiVersion: v1
kind: ServiceAccount
metadata: {name: worker}
`
	// probeIdle is never healthy: nobody places it.
	probeIdle = `apiVersion: v1
kind: Pod
metadata: {name: idle}
spec: {schedulerName: nobody, serviceAccountName: worker, containers: [{name: idle, image: registry.example/idle}]}
`
	// probeRefused is no ConfigMap to any API server.
	probeRefused = `apiVersion: v1
kind: ConfigMap
metadata: {name: refused}
data: {'no key': VALUE}
`
	probeWebhooks = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: '{{ .Variables.name }}'}
webhooks:
- name: probes.crash.example
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  timeoutSeconds: 1
  rules: [{apiGroups: ['{{ .Variables.name }}.crash.example'], apiVersions: [v2], operations: [CREATE], resources: [probes]}]
  clientConfig: {url: 'https://127.0.0.1:1/VALUE'}
`
)

// probe is the add-on in one version.
func probe(value string, dropped bool) map[string]string {
	files := map[string]string{
		"10-webhooks.yaml": probeWebhooks, "20-resource.yaml": probeResource, "30-settings.yaml": probeSettings,
		"40-deployment.yaml": probeDeployment, "50-definition.yaml": probeDefinition,
	}
	if dropped {
		files["60-dropped.yaml"] = probeDropped
	}
	folder := map[string]string{}
	for name, content := range files {
		folder[value+"/"+name] = strings.ReplaceAll(content, "VALUE", value)
	}
	return folder
}

// hook is one that is done when it is written.
func hook(name, events string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", annotations: {helm.sh/hook: '" + events + "'}}\n"
}

// web is a chart in one version.
func web(version string) map[string]string {
	files := map[string]string{
		"Chart.yaml":            "apiVersion: v2\nname: web\nversion: " + version + "\n",
		"values.yaml":           "name: none\n",
		"templates/config.yaml": probeSettings, "templates/deployment.yaml": probeDeployment,
		"templates/account.yaml": webAccount,
		"templates/hooks.yaml":   hook("before", "pre-install,pre-upgrade,pre-delete") + "---\n" + hook("after", "post-install,post-upgrade,post-delete"),
	}
	if version == "1.0.0" {
		files["templates/dropped.yaml"] = probeDropped
	}
	for name, content := range files {
		files[name] = strings.ReplaceAll(content, "VALUE", version)
	}
	return files
}

// frail is an add-on whose version 2.0.0 is refused.
func frail() map[string]string {
	return map[string]string{
		"1.0.0/settings.yaml": strings.ReplaceAll(probeSettings, "VALUE", "1.0.0"), "1.0.0/account.yaml": webAccount,
		"2.0.0/settings.yaml": strings.ReplaceAll(probeSettings, "VALUE", "2.0.0"), "2.0.0/account.yaml": webAccount,
		"2.0.0/brought.yaml": probeDropped, "2.0.0/refused.yaml": probeRefused, "2.0.0/webhooks.yaml": probeWebhooks,
	}
}

// slight is an add-on whose versions differ in one object; the last is as the first.
func slight() map[string]string {
	files := map[string]string{}
	for version, value := range map[string]string{"1.0.0": "first", "1.1.0": "second", "1.2.0": "first"} {
		files[version+"/settings.yaml"], files[version+"/account.yaml"] = strings.ReplaceAll(probeSettings, "VALUE", value), webAccount
		files[version+"/dropped.yaml"] = probeDropped
	}
	return files
}

// idle is a chart whose version 2.0.0 never gets healthy.
func idle(version string) map[string]string {
	files := map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: idle\nversion: " + version + "\n", "templates/account.yaml": webAccount,
		"templates/config.yaml": strings.ReplaceAll(probeSettings, "VALUE", version), "templates/hooks.yaml": hook("after", "post-rollback"),
	}
	if version == "2.0.0" {
		files["templates/brought.yaml"], files["templates/idle.yaml"] = probeDropped, probeIdle
	}
	return files
}

// atomicTimeout is how long a version has that may give way. What it writes it writes in its first pass, whose time counts from its
// begin: it may be short. Records have whole seconds, so that it may be a second shorter.
const atomicTimeout = 4 * time.Second

// givingWay are versions that give way.
func givingWay(versions ...kubermaticv1.AddonVersion) []kubermaticv1.AddonVersion {
	for i := range versions {
		versions[i].Template.Atomic, versions[i].Template.Timeout = true, &metav1.Duration{Duration: atomicTimeout}
	}
	return versions
}

// newStocked is a platform that offers every add-on in both versions.
func newStocked(t *testing.T) *platform {
	t.Helper()
	p := newPlatform(t)
	files := probe("1.0.0", true)
	maps.Copy(files, probe("2.0.0", false))
	for name, folder := range map[string]map[string]string{"probe": files, "frail": frail(), "slight": slight()} {
		if _, err := p.sources.Commit(name, folder); err != nil {
			t.Fatal(err)
		}
	}
	p.publish(t, "probe", p.templates("1.0.0", "probe", "1.0.0"), p.templates("2.0.0", "probe", "2.0.0"))
	p.publish(t, "slight", p.templates("1.0.0", "slight", "1.0.0"), p.templates("1.1.0", "slight", "1.1.0"), p.templates("1.2.0", "slight", "1.2.0"))
	for _, version := range []string{"1.0.0", "2.0.0"} {
		if err := errors.Join(p.sources.Chart(web(version)), p.sources.Chart(idle(version))); err != nil {
			t.Fatal(err)
		}
	}
	p.publish(t, "frail", givingWay(p.templates("1.0.0", "frail", "1.0.0"), p.templates("2.0.0", "frail", "2.0.0"))...)
	p.publish(t, "idle", givingWay(p.chart("1.0.0", "idle"), p.chart("2.0.0", "idle"))...)
	p.publish(t, "web", p.chart("1.0.0", "web"), p.chart("2.0.0", "web"))
	return p
}
