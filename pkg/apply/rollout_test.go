package apply_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
)

// widgets sort the custom resource before its definition, and both before their namespace.
const widgets = `apiVersion: NAME.example.com/v1
kind: Widget
metadata: {name: first, namespace: NAME}
spec: {size: 3}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.NAME.example.com, creationTimestamp: null}
spec:
  group: NAME.example.com
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
status: {storedVersions: []}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: green}
---
apiVersion: v1
kind: Namespace
metadata: {name: NAME}
`

func (l *lab) widgets() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: l.name + ".example.com", Version: "v1", Resource: "widgets"}
}

// Red when all kinds are put into stageRest, or when declaredKinds gives nothing.
func TestFirstAttemptInAnyFileOrder(t *testing.T) {
	l := newLab(t)
	progress := l.rollout(l.prepare(widgets), nil, apply.RolloutOptions{})
	if !progress.Complete || len(progress.Refused) > 0 {
		t.Fatalf("got %+v, want a complete rollout", progress)
	}
	if progress.Written != 4 {
		t.Errorf("%d patches were written, want one for each of the 4 objects", progress.Written)
	}
	if l.get(l.widgets(), l.name, "first") == nil {
		t.Error("the custom resource does not exist")
	}
	var kinds []string
	for _, entry := range progress.Inventory {
		kinds = append(kinds, entry.Kind)
		made := entry.Kind == "CustomResourceDefinition" || entry.Kind == "Namespace" // of others it is not recorded
		if entry.UID == "" || len(entry.Fields) == 0 || entry.Created != made {
			t.Errorf("entry %q lacks UID, fields or that we created it: %+v", entry.Key, entry)
		}
	}
	want := []string{"CustomResourceDefinition", "Namespace", "Widget", "ConfigMap"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("inventory order (-want +got):\n%s", diff)
	}
}

// Red when Advance does not look at item.done.
func TestAdvanceAgainAsksNothing(t *testing.T) {
	l := newLab(t)
	rollout := apply.NewRollout(l.owner, l.prepare(widgets), nil, apply.RolloutOptions{})
	l.eventually("the rollout", func() bool {
		return must(rollout.Advance(t.Context(), l.target))(t).Complete
	})
	again := l.calls.during("", func() { must(rollout.Advance(t.Context(), l.target))(t) })
	if len(again) > 0 {
		t.Errorf("a complete rollout made requests when advanced again: %q", again)
	}
}

// Red when patches carry something that differs each time, or when what is ours as it stands is not taken for it.
func TestRolloutAfterCrashChangesNothing(t *testing.T) {
	l := newLab(t)
	objects := l.prepare(widgets)
	planned := apply.Planned(objects, nil)
	first := l.install(objects, planned)
	before := l.get(configMaps, l.name, "settings").GetResourceVersion()

	second := l.install(objects, planned)

	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the inventory after a crash (-clean +crashed):\n%s", diff)
	}
	if after := l.get(configMaps, l.name, "settings").GetResourceVersion(); after != before {
		t.Errorf("resourceVersion %s became %s: the second rollout wrote", before, after)
	}
}

// Red when what is new is looked for before it is written.
func TestNewObjectsCostOneCallEach(t *testing.T) {
	l := newLab(t)
	l.namespace()
	objects := l.prepare(deployment + "\n---\n" + twoMaps)
	made := l.calls.during("", func() { l.install(objects, apply.Planned(objects, nil)) })
	patches := slices.DeleteFunc(slices.Clone(made), func(call string) bool { return !strings.HasPrefix(call, "PATCH") })
	if want := "GET /api/v1/namespaces/" + l.name; len(patches) != 3 || len(made) != 4 || !slices.Contains(made, want) {
		t.Errorf("calls %q; want %q and a PATCH for each of three objects", made, want)
	}
}

const settings = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: green}`

// AC42, AC43. Red when claim takes what it finds, or package ownership believes a label without a plan.
func TestForeignObjectIsRefusedAndUntouched(t *testing.T) {
	for name, test := range map[string]struct {
		foreign, owner, why string
	}{
		"plain": {
			foreign: `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {mine: "1"}}`,
			owner:   `field manager "kubectl-create"`, why: "nobody else is known",
		},
		"helm": {
			foreign: `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, annotations: ` +
				`{meta.helm.sh/release-name: web, meta.helm.sh/release-namespace: shop}}}`,
			owner: `Helm release "web" in namespace "shop"`, why: "Helm says so",
		},
		"forged label": {
			foreign: `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {addons.kubermatic.k8c.io/installation: ID}}}`,
			owner:   `field manager "kubectl-create"`, why: "a label alone proves nothing (AC43)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.namespace()
			before := l.create(configMaps, l.name, strings.ReplaceAll(test.foreign, "ID", l.owner.ID()))
			progress := l.rollout(l.prepare(settings), nil, apply.RolloutOptions{})
			if diff := cmp.Diff([]string{"ConfigMap settings: ObjectExists"}, reasons(progress.Refused)); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", test.why, diff)
			}
			if message := progress.Refused[0].Message; !strings.Contains(message, test.owner) {
				t.Errorf("%s: the message does not name %q: %s", test.why, test.owner, message)
			}
			if diff := cmp.Diff(before, l.get(configMaps, l.name, "settings")); diff != "" {
				t.Errorf("the foreign object changed:\n%s", diff)
			}
			if len(progress.Inventory) > 0 {
				t.Errorf("a refused object is in the inventory: %v", progress.Inventory)
			}
		})
	}
}

// Red when package ownership does not look at what is planned: an object that a crashed rollout wrote, and whose managers somebody reset,
// would be refused.
func TestPlannedObjectWithOurLabelIsOurs(t *testing.T) {
	l := newLab(t)
	l.namespace()
	l.create(configMaps, l.name, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: `+
		`{addons.kubermatic.k8c.io/installation: `+l.owner.ID()+`}}, data: {color: green}}`)
	objects := l.prepare(settings)
	l.install(objects, apply.Planned(objects, nil))
}

// Red when adoption does not force, or does not move the fields of client-side tools (the key "old" would stay for ever).
func TestAdoption(t *testing.T) {
	l := newLab(t)
	l.namespace()
	before := l.create(configMaps, l.name, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red, old: "1"}}`)
	progress := l.rollout(l.prepare(settings), nil, apply.RolloutOptions{Adopt: true})
	if !progress.Complete || progress.Inventory[0].Created {
		t.Fatalf("got %+v, want the object taken over, not created", progress)
	}
	after := l.get(configMaps, l.name, "settings")
	if after.GetUID() != before.GetUID() {
		t.Error("the object was made anew")
	}
	if diff := cmp.Diff(map[string]any{"color": "green"}, after.Object["data"]); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:1", env: [{name: KEY, value: hunter-two}]}]}`

// RS28. Red when conflicts are forced whatever the record says, or when the owner is not looked up.
func TestConflictNamesObjectFieldAndOwner(t *testing.T) {
	l := newLab(t)
	l.namespace()
	inventory := l.install(l.prepare(settings), nil)
	l.edit(configMaps, "settings", `{data: {size: "9"}}`)

	progress := l.rollout(l.prepare(settings[:len(settings)-1]+`, size: "1"}`), inventory, apply.RolloutOptions{})

	if diff := cmp.Diff([]string{"ConfigMap settings: Conflict"}, reasons(progress.Refused)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	for _, word := range []string{"ConfigMap " + l.name + "/settings", ".data.size", `"kubectl-edit"`} {
		if !strings.Contains(progress.Refused[0].Message, word) {
			t.Errorf("the message does not name %s: %s", word, progress.Refused[0].Message)
		}
	}
	if diff := cmp.Diff(inventory, progress.Inventory); diff != "" {
		t.Errorf("a refused change must leave the entry as it was:\n%s", diff)
	}
}

// RS28: what users added stays. Red when settleFields does not force recorded fields.
func TestConflictAboutRecordedFieldIsRepaired(t *testing.T) {
	l := newLab(t)
	l.namespace()
	inventory := l.install(l.prepare(settings), nil)
	l.edit(configMaps, "settings", `{data: {color: pink, users: kept}}`)
	l.install(l.prepare(strings.Replace(settings, "green", "blue", 1)), inventory)
	want := map[string]any{"color": "blue", "users": "kept"}
	if diff := cmp.Diff(want, l.get(configMaps, l.name, "settings").Object["data"]); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

// RS28. Red when settleFields or lostFields does not know about the scale subresource, or a repair forces replicas: the rollout
// conflicts, or the scaling is undone.
func TestReplicasOfAnAutoscalerStay(t *testing.T) {
	l := newLab(t)
	l.namespace()
	objects := l.prepare(deployment)
	inventory := l.install(objects, nil)
	l.edit(deployments, "web", `{spec: {replicas: 4}}`, "scale")
	if drift := l.drift(inventory); len(drift) > 0 {
		t.Errorf("replicas of an autoscaler are no drift: %v", drift)
	}
	insist := func(after string) {
		t.Helper()
		if replicas, _, _ := nestedInt(l.get(deployments, l.name, "web"), "spec", "replicas"); replicas != 4 {
			t.Errorf("after %s there are %d replicas, want the 4 of the autoscaler", after, replicas)
		}
	}

	loseLabel := `{spec: {paused: true}, metadata: {labels: {addons.kubermatic.k8c.io/installation: null}}}`
	l.edit(deployments, "web", loseLabel)
	applied := apply.Applied{Objects: objects, Inventory: inventory}
	repaired := must(apply.Repair(t.Context(), l.target, l.owner, keysOf(l.drift(inventory)), applied))(t)
	insist("a repair")

	l.edit(deployments, "web", loseLabel)
	applied.Inventory = repaired.Inventory
	repaired = must(apply.Repair(t.Context(), l.target, l.owner, keysOf(l.drift(repaired.Inventory)), applied))(t)
	insist("a second repair")

	inventory = l.install(l.prepare(strings.Replace(deployment, "web:1", "web:2", 1)), repaired.Inventory)
	insist("an upgrade")
	if drift := l.drift(inventory); len(drift) > 0 {
		t.Errorf("replicas of an autoscaler are no drift: %v", drift)
	}
}

// Red when settleFields leaves replicas that the add-on has changed to whoever scaled, or goes on taking them after that.
func TestChangedReplicasAreAppliedOnce(t *testing.T) {
	for name, test := range map[string]struct {
		before, after string
		want          int64
	}{
		"another value":            {"replicas: 1", "replicas: 2", 2},
		"one where there was none": {"paused: false", "paused: false\n  replicas: 2", 2},
		"the same":                 {"replicas: 1", "replicas: 1\n  paused: true", 4},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.namespace()
			before := strings.Replace(deployment, "replicas: 1", test.before, 1)
			inventory := l.update(before, nil)
			l.edit(deployments, "web", `{spec: {replicas: 4}}`, "scale")
			changed := strings.Replace(before, test.before, test.after, 1)
			inventory = l.update(changed, inventory)
			l.expectReplicas("the change", test.want)

			l.edit(deployments, "web", `{spec: {replicas: 5}}`, "scale")
			if drift := l.drift(inventory); len(drift) > 0 {
				t.Errorf("scaling is drift: %v", drift)
			}
			inventory = l.update(strings.Replace(changed, "web:1", "web:2", 1), inventory)
			l.expectReplicas("another change", 5)
			if drift := l.drift(inventory); len(drift) > 0 {
				t.Errorf("scaling is drift: %v", drift)
			}
		})
	}
}

// Replicas go back to the add-on with a write that does not scale. Red when what is left to a scaler is not recorded any more.
func TestReplicasAreGivenBack(t *testing.T) {
	l := newLab(t)
	l.namespace()
	inventory := l.update(deployment, nil)
	l.edit(deployments, "web", `{spec: {replicas: 4}}`, "scale")
	changed := strings.Replace(deployment, "web:1", "web:2", 1)
	inventory = l.update(changed, inventory)
	l.expectReplicas("a change", 4)

	l.edit(deployments, "web", `{spec: {replicas: 3}}`)
	drift := l.drift(inventory)
	must(apply.Repair(t.Context(), l.target, l.owner, keysOf(drift), apply.Applied{Objects: l.prepare(changed), Inventory: inventory}))(t)
	l.expectReplicas("a repair", 1)
}

func (l *lab) expectReplicas(after string, want int64) {
	l.Helper()
	if replicas, _, _ := nestedInt(l.get(deployments, l.name, "web"), "spec", "replicas"); replicas != want {
		l.Errorf("after %s there are %d replicas, want %d", after, replicas, want)
	}
}

// RS30. Red when immutability is not probed (the reason becomes ObjectInvalid), or when values get into messages.
func TestImmutableField(t *testing.T) {
	l := newLab(t)
	l.namespace()
	inventory := l.install(l.prepare(deployment), nil)
	changed := strings.ReplaceAll(deployment, "app: web", "app: shop")

	progress := l.rollout(l.prepare(changed), inventory, apply.RolloutOptions{})
	if diff := cmp.Diff([]string{"Deployment web: ImmutableField"}, reasons(progress.Refused)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if message := progress.Refused[0].Message; !strings.Contains(message, "field spec.selector") {
		t.Errorf("the message does not name the field: %s", message)
	}

	marked := strings.Replace(changed, "{name: web}", "{name: web, annotations: {addons.kubermatic.k8c.io/update: recreate}}", 1)
	again := l.install(l.prepare(marked), inventory)
	if again[0].UID == inventory[0].UID {
		t.Error("the object marked recreate was not made anew")
	}
}

// AC45. Red when problemOf repeats the API server's text for a Secret, or does not mask values.
func TestRefusalsKeepValuesToThemselves(t *testing.T) {
	for name, test := range map[string]struct{ manifest, says string }{
		"secret":      {`{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {key: "hunter-two!"}}`, "is a Secret"},
		"schema":      {strings.Replace(deployment, "value: hunter-two", "valeu: hunter-two", 1), "valeu"},
		"wrong type":  {strings.Replace(deployment, "value: hunter-two", "value: {a: hunter-two}", 1), "KEY"},
		"bad content": {strings.Replace(deployment, "app: web}", "app: -hunter-two}", 1), "spec.selector"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.namespace()
			progress := l.rollout(l.prepare(test.manifest), nil, apply.RolloutOptions{})
			if len(progress.Refused) != 1 || progress.Refused[0].Reason != kubermaticv1.ReasonObjectInvalid {
				t.Fatalf("got %v, want ObjectInvalid", progress.Refused)
			}
			message := progress.Refused[0].Message
			if strings.Contains(message, "hunter-two") || !strings.Contains(message, test.says) {
				t.Errorf("the message repeats a value, or does not say %q: %s", test.says, message)
			}
		})
	}
}

// Red when a kind that is not served stops the rollout, or its object is put in no namespace once it is served.
func TestKindNotServedIsHeldBack(t *testing.T) {
	l := newLab(t)
	l.namespace()
	parts := strings.Split(widgets, "\n---\n")
	addon := strings.Replace(parts[0], ", namespace: NAME", "", 1) + "\n---\n" + parts[2] + "\n---\n" + strings.Split(everyStage, "\n---\n")[0]
	objects := l.prepare(addon)
	options := apply.RolloutOptions{TargetNamespace: l.name}

	progress := l.rollout(objects, nil, options)
	if diff := cmp.Diff([]string{"Widget first: KindNotServed"}, reasons(progress.Refused)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if progress.Complete || progress.Written != 2 || l.get(configMaps, l.name, "settings") == nil {
		t.Error("the rest has to be applied, later stages too, and the rollout not to be complete")
	}

	l.create(definitions, "", parts[1])
	l.eventually("the kind is served", func() bool {
		return l.rollout(objects, progress.Inventory, options).Complete
	})
	if l.get(l.widgets(), l.name, "first") == nil {
		t.Error("the object is not in the target namespace")
	}
}

// Red when checkNamespaces is left out: the ClusterRole is written before anybody knows that the namespace is missing.
func TestMissingNamespaceIsWaitedFor(t *testing.T) {
	l := newLab(t)
	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NAME}\n---\n"
	objects := l.prepare(role + settings)
	rollout := apply.NewRollout(l.owner, objects, nil, apply.RolloutOptions{})
	writes := l.calls.during("PATCH", func() {
		progress := must(rollout.Advance(t.Context(), l.target))(t)
		if diff := cmp.Diff([]string{"ConfigMap settings: NamespaceMissing"}, reasons(progress.Waiting)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	if len(writes) > 0 {
		t.Errorf("written before the namespace was there: %q", writes)
	}
	l.namespace()
	if !must(rollout.Advance(t.Context(), l.target))(t).Complete {
		t.Error("the rollout does not go on when the namespace is there")
	}
}

// Red when awaitEnd or the namespace's deletionTimestamp is not looked at.
func TestTerminatingNamespaceIsWaitedFor(t *testing.T) {
	l := newLab(t)
	l.namespace()
	l.create(configMaps, l.name, `{apiVersion: v1, kind: ConfigMap, metadata: {name: holder, finalizers: [example.com/hold]}}`)
	l.delete(namespaces, "", l.name)
	rollout := apply.NewRollout(l.owner, l.prepare(settings, createNamespace), nil, apply.RolloutOptions{})
	progress := must(rollout.Advance(t.Context(), l.target))(t)
	if diff := cmp.Diff([]string{"Namespace " + l.name + ": NamespaceTerminating"}, reasons(progress.Waiting)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	l.edit(configMaps, "holder", `{metadata: {finalizers: null}}`)
	l.eventually("the rollout in a new namespace", func() bool {
		return must(rollout.Advance(t.Context(), l.target))(t).Complete
	})
}

// Red when an existing Namespace gets into the inventory, or is written to.
func TestExistingNamespaceIsUsedNotOwned(t *testing.T) {
	l := newLab(t)
	l.namespace()
	before := l.get(namespaces, "", l.name)
	inventory := l.install(l.prepare(settings, createNamespace), nil)
	if len(inventory) != 1 || inventory[0].Kind != "ConfigMap" {
		t.Errorf("the inventory is %v, want the ConfigMap alone", inventory)
	}
	if diff := cmp.Diff(before, l.get(namespaces, "", l.name)); diff != "" {
		t.Errorf("the namespace changed:\n%s", diff)
	}
}

// Red when settle does not tell a gone object from a replaced one: "gone" is applied anew, "replaced" is refused.
func TestRecordedUID(t *testing.T) {
	l := newLab(t)
	l.namespace()
	inventory := l.install(l.prepare(settings), nil)
	l.delete(configMaps, l.name, "settings")
	again := l.install(l.prepare(settings), inventory.Doubted())
	if again[0].UID == inventory[0].UID {
		t.Error("the object that was gone still has its UID")
	}

	l.delete(configMaps, l.name, "settings")
	l.create(configMaps, l.name, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: mine}}`)
	progress := l.rollout(l.prepare(settings), again.Doubted(), apply.RolloutOptions{})
	if diff := cmp.Diff([]string{"ConfigMap settings: ObjectExists"}, reasons(progress.Refused)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Red when a namespace that somebody makes between our look and our write is a conflict instead of one that exists.
func TestNamespaceMadeMeanwhileIsUsed(t *testing.T) {
	l := newLab(t)
	var first sync.Once
	l.calls.before = func(call string) {
		if call == "PATCH /api/v1/namespaces/"+l.name {
			first.Do(func() {
				l.create(namespaces, "", `{apiVersion: v1, kind: Namespace, metadata: {name: NAME, labels: `+
					`{addons.kubermatic.k8c.io/created-by: another}}}`)
			})
		}
	}
	progress := l.rollout(l.prepare(settings, createNamespace), nil, apply.RolloutOptions{})
	if !progress.Complete || len(progress.Inventory) != 1 {
		t.Errorf("refused %v, inventory %v; want the namespace used and not owned", progress.Refused, progress.Inventory)
	}
}
