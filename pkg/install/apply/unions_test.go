package apply_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/test/lab"
)

// union is an object in which one member of a union replaces another.
type union struct {
	name, before, after string
}

func workload(kind, spec, pod string) string {
	return `{apiVersion: apps/v1, kind: ` + kind + `, metadata: {name: u}, spec: {selector: {matchLabels: {app: u}}, ` + spec +
		`template: {metadata: {labels: {app: u}}, spec: {` + pod + `}}}}`
}

const main = `containers: [{name: main, image: "registry.example.com/a:1"}]`

func strategy(kind, spec string) string { return workload(kind, spec, main) }

func container(fields string) string {
	return workload("Deployment", "replicas: 0, ", `containers: [{name: main, image: "registry.example.com/a:1", `+fields+`}]`)
}

func volume(source string) string {
	return workload("Deployment", "replicas: 0, ", main+`, volumes: [{name: other, secret: {secretName: other}}, {name: d`+source+`}]`)
}

func env(source string) string {
	return container(`env: [{name: A, value: a}, {name: E, ` + source + `}]`)
}

func probe(handler string) string {
	return container(`livenessProbe: {periodSeconds: 7, ` + handler + `}`)
}

func service(spec string) string {
	return `{apiVersion: v1, kind: Service, metadata: {name: u}, spec: {` + spec + `}}`
}

func definition(conversion string) string {
	return `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: figs.NAME.example.com}, spec: {` +
		`group: NAME.example.com, scope: Namespaced, names: {kind: Fig, plural: figs, singular: fig}, ` + conversion +
		`versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, ` +
		`properties: {file: {type: object, properties: {path: {type: string}, mode: {type: integer, default: 7}}}, ` +
		`url: {type: object, properties: {host: {type: string}, port: {type: integer, default: 80}}}, ` +
		`note: {type: string}, kind: {type: string}, limit: {type: integer}}, oneOf: [{required: [file]}, {required: [url]}], ` +
		`x-kubernetes-validations: [{rule: "!has(self.kind) || self.kind != 'open' || !has(self.limit)", message: open figs have no limit}]}}}}}]}}`
}

const hooked = `conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], ` +
	`clientConfig: {service: {name: hook, namespace: default, path: /convert}}}}, `

func fig(spec string) string {
	return definition("") + "\n---\n{apiVersion: NAME.example.com/v1, kind: Fig, metadata: {name: u}, spec: {" + spec + "}}"
}

func webhook(config string) string {
	return `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: u-NAME}, webhooks: [` +
		`{name: a.example.com, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {` + config + `}}]}`
}

func scaler(spec string) string {
	return `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: u}, spec: {maxReplicas: 3, ` +
		`scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: u}, ` + spec + `}}`
}

// unions are those of Kubernetes' own kinds and of CustomResourceDefinitions, each from one member to another.
var unions = []union{
	{"no strategy to Recreate", strategy("Deployment", ""), strategy("Deployment", "strategy: {type: Recreate}, ")},
	{"RollingUpdate to Recreate", strategy("Deployment", "strategy: {type: RollingUpdate}, "), strategy("Deployment", "strategy: {type: Recreate}, ")},
	{"no rollingUpdate", strategy("Deployment", ""), strategy("Deployment", "strategy: {type: Recreate, rollingUpdate: null}, ")},
	{"maxSurge to Recreate", strategy("Deployment", "strategy: {rollingUpdate: {maxSurge: 1}}, "), strategy("Deployment", "strategy: {type: Recreate}, ")},
	{"StatefulSet to OnDelete", strategy("StatefulSet", "serviceName: u, "), strategy("StatefulSet", "serviceName: u, updateStrategy: {type: OnDelete}, ")},
	{"partition to OnDelete", strategy("StatefulSet", "updateStrategy: {rollingUpdate: {partition: 2}}, "),
		strategy("StatefulSet", "updateStrategy: {type: OnDelete}, ")},
	{"DaemonSet to OnDelete", strategy("DaemonSet", ""), strategy("DaemonSet", "updateStrategy: {type: OnDelete}, ")},
	{"a volume gets a source", volume(""), volume(", configMap: {name: x}")},
	{"emptyDir to configMap", volume(", emptyDir: {}"), volume(", configMap: {name: x}")},
	{"configMap to secret", volume(", configMap: {name: x}"), volume(", secret: {secretName: x}")},
	{"secret to projected", volume(", secret: {secretName: x}"), volume(", projected: {sources: [{serviceAccountToken: {path: t}}]}")},
	{"projected to downwardAPI", volume(", projected: {sources: [{configMap: {name: x}}]}"),
		volume(", downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}")},
	{"hostPath to claim", volume(", hostPath: {path: /x}"), volume(", persistentVolumeClaim: {claimName: x}")},
	{"iscsi to ephemeral", volume(`, iscsi: {targetPortal: "1.2.3.4", iqn: "iqn.2001-04.com.example:a", lun: 0}`), volume(", ephemeral: {volumeClaimTemplate: " +
		"{spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}")},
	{"value to fieldRef", env("value: x"), env("valueFrom: {fieldRef: {fieldPath: metadata.namespace}}")},
	{"fieldRef to secretKeyRef", env("valueFrom: {fieldRef: {fieldPath: metadata.namespace}}"), env("valueFrom: {secretKeyRef: {name: x, key: k}}")},
	{"resourceFieldRef to configMapKeyRef", env("valueFrom: {resourceFieldRef: {resource: limits.cpu}}"), env("valueFrom: {configMapKeyRef: {name: x, key: k}}")},
	{"httpGet to tcpSocket", probe("httpGet: {path: /, port: 80}"), probe("tcpSocket: {port: 80}")},
	{"tcpSocket to grpc", probe("tcpSocket: {port: 80}"), probe("grpc: {port: 80}")},
	{"grpc to exec", probe("grpc: {port: 80}"), probe("exec: {command: [a]}")},
	{"a hook's httpGet to exec", container("lifecycle: {preStop: {httpGet: {port: 80}}}"), container("lifecycle: {preStop: {exec: {command: [a]}}}")},
	{"profile from a file", container("securityContext: {seccompProfile: {type: Localhost, localhostProfile: a}}"),
		container("securityContext: {seccompProfile: {type: RuntimeDefault}}")},
	{"ClusterIP to NodePort", service("ports: [{port: 80}]"), service("type: NodePort, ports: [{port: 80}]")},
	{"ClusterIP to ExternalName", service("ports: [{port: 80}]"), service("type: ExternalName, externalName: a.example.com")},
	{"LoadBalancer to ExternalName", service("type: LoadBalancer, externalTrafficPolicy: Local, ports: [{port: 80}]"),
		service("type: ExternalName, externalName: a.example.com")},
	{"LoadBalancer to ClusterIP", service("type: LoadBalancer, externalTrafficPolicy: Local, ports: [{port: 80}]"), service("ports: [{port: 80}]")},
	{"affinity to none", service("sessionAffinity: ClientIP, ports: [{port: 80}]"), service("sessionAffinity: None, ports: [{port: 80}]")},
	{"named ports to one", service("type: NodePort, ports: [{name: a, port: 80}, {name: b, port: 81}]"), service("ports: [{port: 81, targetPort: x}]")},
	{"default metrics to others", scaler("minReplicas: 1"),
		scaler("metrics: [{type: Pods, pods: {metric: {name: q}, target: {type: AverageValue, averageValue: 1}}}]")},
	{"behavior", scaler("behavior: {scaleDown: {stabilizationWindowSeconds: 5}}"), scaler("behavior: {scaleUp: {selectPolicy: Disabled}}")},
	{"an Ingress's backend", `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: u}, spec: {defaultBackend: {service: {name: a, port: {number: 80}}}}}`,
		`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: u}, spec: {defaultBackend: {resource: {apiGroup: x.example.com, kind: B, name: b}}}}`},
	{"an Ingress's port", `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: u}, spec: {defaultBackend: {service: {name: a, port: {number: 80}}}}}`,
		`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: u}, spec: {defaultBackend: {service: {name: a, port: {name: http}}}}}`},
	{"a NetworkPolicy's peer", `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: u}, spec: {podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8}}]}]}}`,
		`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: u}, spec: {podSelector: {}, policyTypes: [Egress], egress: [{to: [{podSelector: {}}]}]}}`},
	{"minAvailable to maxUnavailable", `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: u}, spec: {selector: {matchLabels: {a: b}}, minAvailable: 1}}`,
		`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: u}, spec: {selector: {matchLabels: {a: b}}, maxUnavailable: 1}}`},
	{"no conversion webhook", definition(hooked), definition("")},
	{"conversion None", definition(hooked), definition("conversion: {strategy: None}, ")},
	{"conversion by a webhook", definition(""), definition(hooked)},
	{"a custom resource's file to url", fig("file: {path: /a}"), fig("url: {host: a}")},
	{"a custom resource's empty url to file", fig("url: {}"), fig("file: {}")},
	{"a webhook's service to url", webhook("service: {name: a, namespace: default}"), webhook("url: https://127.0.0.1:9/")},
}

var unionResources = map[string]schema.GroupVersionResource{
	"Deployment": lab.Deployments, "CustomResourceDefinition": lab.Definitions,
	"StatefulSet":                    {Group: "apps", Version: "v1", Resource: "statefulsets"},
	"DaemonSet":                      {Group: "apps", Version: "v1", Resource: "daemonsets"},
	"Service":                        {Version: "v1", Resource: "services"},
	"HorizontalPodAutoscaler":        {Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
	"Ingress":                        {Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
	"NetworkPolicy":                  {Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
	"PodDisruptionBudget":            {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	"ValidatingWebhookConfiguration": {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
}

// leftBehind are moves that leave a default that the API server does not refuse.
var leftBehind = []string{"DaemonSet to OnDelete"}

func unionResource(l *lab.Lab, object *unstructured.Unstructured) schema.GroupVersionResource {
	if object.GetKind() == "Fig" {
		return schema.GroupVersionResource{Group: l.Unique + ".example.com", Version: "v1", Resource: "figs"}
	}
	return unionResources[object.GetKind()]
}

// readUnion returns the last object of manifests as it is in the cluster, with the entries of all but Kubernetes' own
// controllers, and without data that differs between two objects of the same content.
func readUnion(l *lab.Lab, objects []*unstructured.Unstructured) (content, managed string) {
	l.Helper()
	last := objects[len(objects)-1]
	client := l.Others.Resource(unionResource(l, last))
	var live *unstructured.Unstructured
	if last.GetNamespace() == "" {
		live = lab.Must(client.Get(l.Context(), last.GetName(), metav1.GetOptions{}))(l)
	} else {
		live = lab.Must(client.Namespace(l.Unique).Get(l.Context(), last.GetName(), metav1.GetOptions{}))(l)
	}
	var entries []string
	for _, entry := range live.GetManagedFields() {
		if entry.Manager != "kube-controller-manager" && entry.Manager != "kube-apiserver" {
			entries = append(entries, fmt.Sprint(entry.Manager, " ", entry.Operation, " ", entry.APIVersion, " ", entry.FieldsV1))
		}
	}
	slices.Sort(entries)
	for _, assigned := range [][]string{{"metadata"}, {"status"}, {"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"spec", "healthCheckNodePort"}} {
		unstructured.RemoveNestedField(live.Object, assigned...)
	}
	if ports, found, _ := unstructured.NestedSlice(live.Object, "spec", "ports"); found {
		for _, port := range ports {
			delete(port.(map[string]any), "nodePort")
		}
		_ = unstructured.SetNestedSlice(live.Object, ports, "spec", "ports")
	}
	text := lab.Must(json.MarshalIndent(live.Object, "", " "))(l)
	clean := strings.NewReplacer(l.Unique, "NAME", l.Owner.ID(), "ID").Replace
	return clean(string(text)), clean(strings.Join(entries, "\n"))
}

// TestUnionsTurnToAnotherMember fails without yield, and then for members that have defaults; if managed fields of a
// default stay ours (the second upgrade, the rollback).
func TestUnionsTurnToAnotherMember(t *testing.T) {
	methods := map[string]func(*apply.Options){"go-template": func(*apply.Options) {}, "chart": func(options *apply.Options) {
		options.Helm = &ownership.HelmMarks{ReleaseName: "web", ReleaseNamespace: "web"}
	}}
	for method, marks := range methods {
		for _, test := range unions {
			t.Run(test.name+" by "+method, func(t *testing.T) {
				t.Parallel()
				l := lab.New(t)
				l.Namespace()
				var inventory ownership.Inventory
				for at, manifest := range []string{test.before, test.after, test.before, test.after} {
					objects := l.Prepare(manifest, marks)
					progress := l.Rollout(objects, apply.Planned(objects, inventory), apply.RolloutOptions{})
					if !progress.Complete {
						t.Fatalf("move %d: %+v", at, progress.Refused)
					}
					inventory = progress.Inventory
					content, managed := readUnion(l, objects)
					fresh := lab.New(t)
					fresh.Namespace()
					again := fresh.Prepare(strings.Replace(manifest, ", rollingUpdate: null", "", 1), marks) // a null is not kept
					fresh.Install(again, nil)
					wantContent, wantManaged := readUnion(fresh, again)
					if diff := cmp.Diff(wantContent, content); diff != "" && !slices.Contains(leftBehind, test.name) {
						t.Errorf("move %d: content (-fresh +got):\n%s", at, diff)
					}
					if diff := cmp.Diff(wantManaged, managed); diff != "" {
						t.Errorf("move %d: managed fields (-fresh +got):\n%s", at, diff)
					}
					if drift := l.Drift(inventory); len(drift) > 0 {
						t.Errorf("move %d: drift %v", at, drift)
					}
				}
			})
		}
	}
}

func edit(resource schema.GroupVersionResource, manager, kind, patch string) func(*lab.Lab, string) {
	return func(l *lab.Lab, name string) {
		var client dynamic.ResourceInterface = l.Others.Resource(resource)
		if resource != lab.Definitions {
			client = l.Others.Resource(resource).Namespace(l.Unique)
		}
		lab.Must(client.Patch(l.Context(), name, types.PatchType(kind), []byte(patch), metav1.PatchOptions{FieldManager: manager}))(l)
	}
}

const jsonPatch, mergePatch = string(types.JSONPatchType), string(types.MergePatchType)

// TestFieldsOfOthersThatAreRefusedTogetherGo fails without takeSurplus; if it takes all surplus fields instead of the
// fewest (kept); if fields stay with their owner (the API server restores them); and if owners are not named.
func TestFieldsOfOthersThatAreRefusedTogetherGo(t *testing.T) {
	recreate := strategy("Deployment", "strategy: {type: Recreate}, ")
	policy := func(spec string) string {
		return `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: u}, spec: {selector: {matchLabels: {a: b}}, ` + spec + `}}`
	}
	caBundle := edit(lab.Definitions, "cainjector", jsonPatch,
		`[{"op":"add","path":"/spec/conversion/webhook/clientConfig/caBundle","value":"`+authority+`"}]`)
	figs := func(l *lab.Lab, name string) {
		edit(unionResource(l, l.Objects(fig(""))[1]), "operator", mergePatch, `{"spec":{"limit":3,"note":"theirs"}}`)(l, name)
	}
	for _, test := range []struct {
		name, before, after string
		edit                func(*lab.Lab, string)
		taken               string
		kept                []string
	}{
		{"an injector's authority", definition(hooked), definition(""), caBundle, `field .spec.conversion, which field manager "cainjector" owned, was removed`, nil},
		{"an injector's authority, None", definition(hooked), definition("conversion: {strategy: None}, "), caBundle,
			`field .spec.conversion.webhook, which field manager "cainjector" owned, was removed`, nil},
		{"an editor's default", recreate, recreate,
			edit(lab.Deployments, "kubectl-edit", mergePatch, `{"spec":{"strategy":{"type":"RollingUpdate"},"revisionHistoryLimit":4}}`),
			`field .spec.strategy.rollingUpdate, which field manager "kubectl-edit" owned, was removed`, []string{`"revisionHistoryLimit": 4`}},
		{"an editor's default, and an upgrade", strategy("Deployment", ""), recreate,
			edit(lab.Deployments, "kubectl-edit", mergePatch, `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":3}},"minReadySeconds":4}}`),
			`field .spec.strategy.rollingUpdate, which field manager "kubectl-edit" owned, was removed`, []string{`"minReadySeconds": 4`}},
		{"a limit of a volume", volume(""), volume(", configMap: {name: x}"), edit(lab.Deployments, "limiter", jsonPatch,
			`[{"op":"add","path":"/spec/template/spec/volumes/1/emptyDir","value":{"sizeLimit":"1Gi"}},`+
				`{"op":"add","path":"/spec/template/spec/volumes/-","value":{"name":"theirs","emptyDir":{}}}]`),
			`field .spec.template.spec.volumes[name="d"].emptyDir, which field manager "limiter" owned, was removed`, []string{`"name": "theirs"`, `"secretName": "other"`}},
		{"another bound of a budget", policy(""), policy("minAvailable: 1"), edit(unionResources["PodDisruptionBudget"], "admin", mergePatch,
			`{"spec":{"maxUnavailable":2,"unhealthyPodEvictionPolicy":"AlwaysAllow"}}`),
			`field .spec.maxUnavailable, which field manager "admin" owned, was removed`, []string{`"AlwaysAllow"`}},
		{"a rule of a kind", fig("file: {path: /a}"), fig("file: {path: /a}, kind: open"), figs,
			`field .spec.limit, which field manager "operator" owned, was removed`, []string{`"note": "theirs"`}},
		{"an editor's volume", volume(", configMap: {name: x}"), volume(", configMap: {name: x}"), edit(lab.Deployments, "limiter", jsonPatch,
			`[{"op":"replace","path":"/spec/template/spec/volumes/1","value":{"name":"d","emptyDir":{"sizeLimit":"1Gi"}}},`+
				`{"op":"add","path":"/spec/template/spec/volumes/-","value":{"name":"theirs","emptyDir":{}}}]`),
			`field .spec.template.spec.volumes[name="d"].emptyDir, which field manager "limiter" owned, was removed`, []string{`"name": "theirs"`, `"secretName": "other"`}},
		{"an editor's bound", policy("minAvailable: 1"), policy("minAvailable: 1"), edit(unionResources["PodDisruptionBudget"], "admin", mergePatch,
			`{"spec":{"minAvailable":null,"maxUnavailable":2,"unhealthyPodEvictionPolicy":"AlwaysAllow"}}`),
			`field .spec.maxUnavailable, which field manager "admin" owned, was removed`, []string{`"AlwaysAllow"`}},
		{"an operator's limit", fig("file: {path: /a}, kind: open"), fig("file: {path: /a}, kind: open"), func(l *lab.Lab, name string) {
			edit(unionResource(l, l.Objects(fig(""))[1]), "operator", mergePatch, `{"spec":{"kind":null,"limit":3,"note":"theirs"}}`)(l, name)
		}, `field .spec.limit, which field manager "operator" owned, was removed`, []string{`"note": "theirs"`}},
		{"an editor's probe", probe("httpGet: {path: /, port: 80}"), probe("httpGet: {path: /, port: 80}"), edit(lab.Deployments, "kubectl-edit", jsonPatch,
			`[{"op":"remove","path":"/spec/template/spec/containers/0/livenessProbe/httpGet"},`+
				`{"op":"add","path":"/spec/template/spec/containers/0/livenessProbe/tcpSocket","value":{"port":81}},`+
				`{"op":"replace","path":"/spec/template/spec/containers/0/livenessProbe/timeoutSeconds","value":9}]`),
			`field .spec.template.spec.containers[name="main"].livenessProbe.tcpSocket, which field manager "kubectl-edit" owned, was removed`,
			[]string{`"timeoutSeconds": 9`}},
		{"an editor's variable", env("valueFrom: {secretKeyRef: {name: x, key: k}}"), env("valueFrom: {secretKeyRef: {name: x, key: k}}"),
			edit(lab.Deployments, "kubectl-edit", jsonPatch, `[{"op":"replace","path":"/spec/template/spec/containers/0/env/1","value":{"name":"E","value":"e"}}]`),
			`field .spec.template.spec.containers[name="main"].env[name="E"].value, which field manager "kubectl-edit" owned, was removed`, nil},
		{"an injector's conversion", definition("conversion: {strategy: None}, "), definition("conversion: {strategy: None}, "), edit(lab.Definitions, "cainjector", jsonPatch,
			`[{"op":"replace","path":"/spec/conversion","value":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":`+
				`{"caBundle":"`+authority+`","service":{"name":"hook","namespace":"default","path":"/convert"}}}}}]`),
			`field .spec.conversion.webhook, which field manager "cainjector" owned, was removed`, nil},
		{"a scaler's replicas stay", strategy("Deployment", "replicas: 1, "), strategy("Deployment", "replicas: 1, strategy: {type: Recreate}, "),
			func(l *lab.Lab, name string) { l.Edit(lab.Deployments, name, `{spec: {replicas: 2}}`, "scale") }, "", []string{`"replicas": 2`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := lab.New(t)
			l.Namespace()
			before, after := l.Prepare(test.before), l.Prepare(test.after)
			inventory := l.Install(before, nil)
			test.edit(l, before[len(before)-1].GetName())
			var taken []calls.Note
			if test.before == test.after {
				drift := lab.KeysOf(l.Drift(inventory))
				repaired := lab.Must(apply.Repair(t.Context(), l.Target, l.Owner, drift, apply.Applied{Objects: after, Inventory: inventory}))(t)
				if len(drift) != 1 || len(repaired.Refused) > 0 {
					t.Fatalf("drift %v, not repaired: %v", drift, repaired.Refused)
				}
				taken, inventory = repaired.Taken, repaired.Inventory
			} else {
				progress := l.Rollout(after, apply.Planned(after, inventory), apply.RolloutOptions{})
				if !progress.Complete {
					t.Fatalf("refused: %v", progress.Refused)
				}
				taken, inventory = progress.Taken, progress.Inventory
			}
			content, managed := readUnion(l, after)
			for _, kept := range test.kept {
				if !strings.Contains(content, kept) {
					t.Errorf("%s is gone from:\n%s", kept, content)
				}
			}
			if said := fmt.Sprint(taken); (test.taken != "") != (len(taken) > 0) || !strings.Contains(said, test.taken) {
				t.Errorf("taken: %s, want %s", said, test.taken)
			}
			fresh := lab.New(t)
			fresh.Namespace()
			again := fresh.Prepare(test.after)
			fresh.Install(again, nil)
			_, want := readUnion(fresh, again)
			if ours := entryOf(managed); ours != entryOf(want) && test.name != "a scaler's replicas stay" {
				t.Errorf("our fields are\n%s\nwant\n%s", ours, entryOf(want))
			}
			if drift := l.Drift(inventory); len(drift) > 0 {
				t.Errorf("drift %v", drift)
			}
			if test.before != test.after {
				l.Install(before, apply.Planned(before, inventory)) // the rollback
			}
		})
	}
}

func entryOf(managed string) string {
	for line := range strings.SplitSeq(managed, "\n") {
		if strings.HasPrefix(line, "addon-installation/") {
			return line
		}
	}
	return ""
}

// authority is an unused certificate.
const authority = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJkVENDQVJ1Z0F3SUJBZ0lVS0dZc3NySXphRUtTNnZubmxxdGNadml6WFNzd0NnWUlLb1" +
	"pJemowRUF3SXcKRHpFTk1Bc0dBMVVFQXd3RWRHVnpkREFnRncweU5qRXhNamt3TWpFME1qaGFHQTh5TVRJMk1URXdOVEF5TVRReQpPRm93RHpF" +
	"Tk1Bc0dBMVVFQXd3RWRHVnpkREJaTUJNR0J5cUdTTTQ5QWdFR0NDcUdTTTQ5QXdFSEEwSUFCTXVzCjJYamFYZlZqL0RKdlU3ZTRLQTNpMlJOby" +
	"swZEpydE45c0tOSDZ4d3JCZnY1dmJBa2JmOWx1VXhDVGpHRkhYNjUKQXBMZUZtdVdVM1JBWGwvMFFhT2pVekJSTUIwR0ExVWREZ1FXQkJTSEp4" +
	"eTdTY1grUk14NWtuQVJ4OXQ5Q2lIQQp2ekFmQmdOVkhTTUVHREFXZ0JTSEp4eTdTY1grUk14NWtuQVJ4OXQ5Q2lIQXZ6QVBCZ05WSFJNQkFmOE" +
	"VCVEFECkFRSC9NQW9HQ0NxR1NNNDlCQU1DQTBnQU1FVUNJUURrTkpiamt4emhpaVlpMGwwUHNWc2tsRldmUW9iQzV3dm0KZWhXZmhoZXA4QUln" +
	"Q2VRdFVIbmZQRW4rZG9lVy9wVkkwNVM1cCtTVFZOb1BJcEZFVzJRaFJYWT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
