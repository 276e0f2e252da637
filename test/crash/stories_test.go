package crash_test

import (
	"maps"
	"strings"
	"sync/atomic"
	"testing"
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
		"templates/account.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: worker}\n",
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

// stories by name, which is the label of their installations too; each is about rows of the threat model.
//
// RS07, a kill at every write, is all of them. The other rows are boundaries among those that RS07 comes by, which is what
// through sees to.
var stories = []story{
	{
		// RS06: killed after the namespace was made and before the CRD. RS08: killed between the objects and the record of them.
		// Red when isOurs of pkg/apply knows nothing for ours that has no UID on record: the namespace stays in the end, and
		// everything else is refused as somebody else's.
		name: "install", addon: "probe", to: "1.0.0",
		through: []string{
			"user PATCH /api/v1/namespaces/NAME", "user PATCH /apis/apiextensions.k8s.io/", "user PATCH /apis/apps/",
			"user PATCH /apis/admissionregistration.k8s.io/", "seed POST /api/v1/namespaces/cluster-NAME/secrets",
			"seed PUT /api/v1/namespaces/cluster-NAME/secrets/addon-OWNER-1",
		},
	},
	{
		// RS08. Red when the intent is remembered without being saved: what was written before the kill stays for good.
		name: "install-removed-instead", addon: "probe", to: "1.0.0", instead: true,
		through: []string{"user PATCH /apis/apps/"},
	},
	{
		// Red when the record forgets what is superseded before that is pruned: ConfigMap dropped stays.
		name: "upgrade", addon: "probe", from: "1.0.0", to: "2.0.0",
		through: []string{"user DELETE /api/v1/namespaces/NAME/configmaps/dropped", "seed PUT /api/v1/namespaces/cluster-NAME/secrets/addon-OWNER-2"},
	},
	{
		// Red when the records are forgotten before the objects are removed.
		name: "remove", addon: "probe", from: "2.0.0",
		through: []string{"user DELETE /api/v1/namespaces/NAME", "seed DELETE /api/v1/namespaces/cluster-NAME/secrets/addon-OWNER-1"},
	},
	{
		// RS09. Red when the copy of the release is written by the pass that applied its objects only: helm shows nothing.
		name: "helm-install", addon: "web", to: "1.0.0",
		through: []string{"user POST /api/v1/namespaces/NAME/secrets"},
	},
	{
		// RS09. Red when earlier revisions are superseded only where the new one was written by the same pass.
		name: "helm-upgrade", addon: "web", from: "1.0.0", to: "2.0.0",
		through: []string{"user POST /api/v1/namespaces/NAME/secrets", "user PUT /api/v1/namespaces/NAME/secrets/sh.helm.release.v1.NAME.v1"},
	},
	{
		// RS09. Red when the records are forgotten before the objects are removed.
		name: "helm-remove", addon: "web", from: "2.0.0",
		through: []string{"user DELETE /api/v1/namespaces/NAME/secrets"},
	},
}

// TestRS07KilledAtEveryWrite tells every story with a kill -9 before and after each write that the seed or the user cluster
// gets, and the seed's answer to the installation's finalizer. What is left out are events.
func TestRS07KilledAtEveryWrite(t *testing.T) {
	p := newStocked(t)
	var total atomic.Int32
	t.Run("stories", func(t *testing.T) {
		for _, story := range stories {
			t.Run(story.name, func(t *testing.T) {
				t.Parallel()
				total.Add(int32(story.tell(t, p)))
			})
		}
	})
	t.Logf("killed at %d boundaries in %d stories", total.Load(), len(stories))
}

// newStocked is a platform that offers both add-ons in both versions.
func newStocked(t *testing.T) *platform {
	t.Helper()
	p := newPlatform(t)
	files := probe("1.0.0", true)
	maps.Copy(files, probe("2.0.0", false))
	if _, err := p.sources.Commit("probe", files); err != nil {
		t.Fatal(err)
	}
	p.publish(t, "probe", p.templates("1.0.0", "probe", "1.0.0"), p.templates("2.0.0", "probe", "2.0.0"))
	for _, version := range []string{"1.0.0", "2.0.0"} {
		if err := p.sources.Chart(web(version)); err != nil {
			t.Fatal(err)
		}
	}
	p.publish(t, "web", p.chart("1.0.0", "web"), p.chart("2.0.0", "web"))
	return p
}
