package apply_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/test/lab"
)

// TestFirstAttemptInAnyFileOrder fails if all kinds are put into stageRest, or if DeclaredKinds returns nothing.
func TestFirstAttemptInAnyFileOrder(t *testing.T) {
	l := lab.New(t)
	progress := l.Rollout(l.Prepare(lab.Widgets), nil, apply.RolloutOptions{})
	if !progress.Complete || len(progress.Refused) > 0 {
		t.Fatalf("got %+v, want a complete rollout", progress)
	}
	if progress.Written != 4 {
		t.Errorf("%d patches were written, want one for each of the 4 objects", progress.Written)
	}
	if l.Get(l.Widgets(), l.Unique, "first") == nil {
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

// TestAdvanceAgainAsksNothing fails if Advance ignores item.done.
func TestAdvanceAgainAsksNothing(t *testing.T) {
	l := lab.New(t)
	rollout := apply.NewRollout(l.Owner, l.Prepare(lab.Widgets), nil, apply.RolloutOptions{})
	l.Eventually("the rollout", func() bool {
		return lab.Must(rollout.Advance(t.Context(), l.Target))(t).Complete
	})
	again := l.Calls.During("", func() { lab.Must(rollout.Advance(t.Context(), l.Target))(t) })
	if len(again) > 0 {
		t.Errorf("a complete rollout made requests when advanced again: %q", again)
	}
}

// TestRolloutAfterCrashChangesNothing fails if patches contain data that differs each time, or if an unchanged object
// of ours is not recognized.
func TestRolloutAfterCrashChangesNothing(t *testing.T) {
	l := lab.New(t)
	objects := l.Prepare(lab.Widgets)
	planned := apply.Planned(objects, nil)
	first := l.Install(objects, planned)
	before := l.Get(lab.ConfigMaps, l.Unique, "settings").GetResourceVersion()

	second := l.Install(objects, planned)

	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the inventory after a crash (-clean +crashed):\n%s", diff)
	}
	if after := l.Get(lab.ConfigMaps, l.Unique, "settings").GetResourceVersion(); after != before {
		t.Errorf("resourceVersion %s became %s: the second rollout wrote", before, after)
	}
}

// TestNewObjectsCostOneCallEach fails if new objects are looked up before they are written.
func TestNewObjectsCostOneCallEach(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	objects := l.Prepare(lab.Deployment + "\n---\n" + lab.TwoMaps)
	made := l.Calls.During("", func() { l.Install(objects, apply.Planned(objects, nil)) })
	patches := slices.DeleteFunc(slices.Clone(made), func(call string) bool { return !strings.HasPrefix(call, "PATCH") })
	if want := "GET /api/v1/namespaces/" + l.Unique; len(patches) != 3 || len(made) != 4 || !slices.Contains(made, want) {
		t.Errorf("calls %q; want %q and a PATCH for each of three objects", made, want)
	}
}

// AC42, AC43: An object of another owner is refused and stays unchanged, also if it has our labels. It fails if
// readExisting accepts every object, or package ownership accepts a label without a plan.
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
			owner:   `field manager "kubectl-create"`, why: "a label alone proves nothing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := lab.New(t)
			l.Namespace()
			before := l.Create(lab.ConfigMaps, l.Unique, strings.ReplaceAll(test.foreign, "ID", l.Owner.ID()))
			progress := l.Rollout(l.Prepare(lab.Settings), nil, apply.RolloutOptions{})
			if diff := cmp.Diff([]string{"ConfigMap settings: ObjectExists"}, lab.Reasons(progress.Refused)); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", test.why, diff)
			}
			if message := progress.Refused[0].Message; !strings.Contains(message, test.owner) {
				t.Errorf("%s: the message does not name %q: %s", test.why, test.owner, message)
			}
			if diff := cmp.Diff(before, l.Get(lab.ConfigMaps, l.Unique, "settings")); diff != "" {
				t.Errorf("the foreign object changed:\n%s", diff)
			}
			if len(progress.Inventory) > 0 {
				t.Errorf("a refused object is in the inventory: %v", progress.Inventory)
			}
		})
	}
}

// TestPlannedObjectWithOurLabelIsOurs fails if package ownership ignores planned entries: an object that a crashed
// rollout wrote, and whose managers a client removed, would be refused.
func TestPlannedObjectWithOurLabelIsOurs(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	l.Create(lab.ConfigMaps, l.Unique, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: `+
		`{addons.kubermatic.k8c.io/installation: `+l.Owner.ID()+`}}, data: {color: green}}`)
	objects := l.Prepare(lab.Settings)
	l.Install(objects, apply.Planned(objects, nil))
}

// TestAdoption fails if adoption does not force, or does not move the fields of client-side tools (the key "old" would
// stay forever).
func TestAdoption(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	before := l.Create(lab.ConfigMaps, l.Unique, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red, old: "1"}}`)
	progress := l.Rollout(l.Prepare(lab.Settings), nil, apply.RolloutOptions{Adopt: true})
	if !progress.Complete || progress.Inventory[0].Created {
		t.Fatalf("got %+v, want the object taken over, not created", progress)
	}
	after := l.Get(lab.ConfigMaps, l.Unique, "settings")
	if after.GetUID() != before.GetUID() {
		t.Error("the object was made anew")
	}
	if diff := cmp.Diff(map[string]any{"color": "green"}, after.Object["data"]); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

// RS28: A conflict about a field is not forced; object, field and owner are named. It fails if conflicts are forced
// regardless of the record, or if the owner is not looked up.
func TestConflictNamesObjectFieldAndOwner(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	inventory := l.Install(l.Prepare(lab.Settings), nil)
	l.Edit(lab.ConfigMaps, "settings", `{data: {size: "9"}}`)

	progress := l.Rollout(l.Prepare(lab.Settings[:len(lab.Settings)-1]+`, size: "1"}`), inventory, apply.RolloutOptions{})

	if diff := cmp.Diff([]string{"ConfigMap settings: Conflict"}, lab.Reasons(progress.Refused)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if cause := progress.Refused[0].Cause; cause != kubermaticv1.ReasonFieldOfOthers {
		t.Errorf("the cause is %q", cause)
	}
	for _, word := range []string{"ConfigMap " + l.Unique + "/settings", ".data.size", `"kubectl-edit"`} {
		if !strings.Contains(progress.Refused[0].Message, word) {
			t.Errorf("the message does not name %s: %s", word, progress.Refused[0].Message)
		}
	}
	if diff := cmp.Diff(inventory, progress.Inventory); diff != "" {
		t.Errorf("a refused change must leave the entry as it was:\n%s", diff)
	}
}

// RS28: A recorded field is restored, and users' additions stay. It fails if resolveFields does not force recorded
// fields.
func TestConflictAboutRecordedFieldIsRepaired(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	inventory := l.Install(l.Prepare(lab.Settings), nil)
	l.Edit(lab.ConfigMaps, "settings", `{data: {color: pink, users: kept}}`)
	l.Install(l.Prepare(strings.Replace(lab.Settings, "green", "blue", 1)), inventory)
	want := map[string]any{"color": "blue", "users": "kept"}
	if diff := cmp.Diff(want, l.Get(lab.ConfigMaps, l.Unique, "settings").Object["data"]); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

// RS28: Replicas that an autoscaler set stay. It fails if resolveFields or fieldsets.Lost ignores the scale
// subresource, or a repair forces replicas: the rollout conflicts, or the scaling is undone.
func TestReplicasOfAnAutoscalerStay(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	objects := l.Prepare(lab.Deployment)
	inventory := l.Install(objects, nil)
	l.Edit(lab.Deployments, "web", `{spec: {replicas: 4}}`, "scale")
	if drift := l.Drift(inventory); len(drift) > 0 {
		t.Errorf("replicas of an autoscaler are no drift: %v", drift)
	}
	insist := func(after string) {
		t.Helper()
		if replicas, _, _ := lab.NestedInt(l.Get(lab.Deployments, l.Unique, "web"), "spec", "replicas"); replicas != 4 {
			t.Errorf("after %s there are %d replicas, want the 4 of the autoscaler", after, replicas)
		}
	}

	loseLabel := `{spec: {paused: true}, metadata: {labels: {addons.kubermatic.k8c.io/installation: null}}}`
	l.Edit(lab.Deployments, "web", loseLabel)
	applied := apply.Applied{Objects: objects, Inventory: inventory}
	repaired := lab.Must(apply.Repair(t.Context(), l.Target, l.Owner, lab.KeysOf(l.Drift(inventory)), applied))(t)
	insist("a repair")

	l.Edit(lab.Deployments, "web", loseLabel)
	applied.Inventory = repaired.Inventory
	repaired = lab.Must(apply.Repair(t.Context(), l.Target, l.Owner, lab.KeysOf(l.Drift(repaired.Inventory)), applied))(t)
	insist("a second repair")

	inventory = l.Install(l.Prepare(strings.Replace(lab.Deployment, "web:1", "web:2", 1)), repaired.Inventory)
	insist("an upgrade")
	if drift := l.Drift(inventory); len(drift) > 0 {
		t.Errorf("replicas of an autoscaler are no drift: %v", drift)
	}
}

// TestChangedReplicasAreAppliedOnce fails if resolveFields leaves replicas that the add-on has changed to their scaler,
// or still takes them after that.
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
			l := lab.New(t)
			l.Namespace()
			before := strings.Replace(lab.Deployment, "replicas: 1", test.before, 1)
			inventory := l.Update(before, nil)
			l.Edit(lab.Deployments, "web", `{spec: {replicas: 4}}`, "scale")
			changed := strings.Replace(before, test.before, test.after, 1)
			inventory = l.Update(changed, inventory)
			l.ExpectReplicas("the change", test.want)

			l.Edit(lab.Deployments, "web", `{spec: {replicas: 5}}`, "scale")
			if drift := l.Drift(inventory); len(drift) > 0 {
				t.Errorf("scaling is drift: %v", drift)
			}
			inventory = l.Update(strings.Replace(changed, "web:1", "web:2", 1), inventory)
			l.ExpectReplicas("another change", 5)
			if drift := l.Drift(inventory); len(drift) > 0 {
				t.Errorf("scaling is drift: %v", drift)
			}
		})
	}
}

// Replicas return to the add-on with a write that does not scale. It fails if replicas left to a scaler are no longer
// recorded.
func TestReplicasAreGivenBack(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	inventory := l.Update(lab.Deployment, nil)
	l.Edit(lab.Deployments, "web", `{spec: {replicas: 4}}`, "scale")
	changed := strings.Replace(lab.Deployment, "web:1", "web:2", 1)
	inventory = l.Update(changed, inventory)
	l.ExpectReplicas("a change", 4)

	l.Edit(lab.Deployments, "web", `{spec: {replicas: 3}}`)
	drift := l.Drift(inventory)
	lab.Must(apply.Repair(t.Context(), l.Target, l.Owner, lab.KeysOf(drift), apply.Applied{Objects: l.Prepare(changed), Inventory: inventory}))(t)
	l.ExpectReplicas("a repair", 1)
}

// RS30: A change of an immutable field is reported as such, without its values. It fails if immutability is not probed
// (the reason becomes ObjectInvalid), or if values get into messages.
func TestImmutableField(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	inventory := l.Install(l.Prepare(lab.Deployment), nil)
	changed := strings.ReplaceAll(lab.Deployment, "app: web", "app: shop")

	progress := l.Rollout(l.Prepare(changed), inventory, apply.RolloutOptions{})
	if diff := cmp.Diff([]string{"Deployment web: ImmutableField"}, lab.Reasons(progress.Refused)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if message := progress.Refused[0].Message; !strings.Contains(message, "field spec.selector") {
		t.Errorf("the message does not name the field: %s", message)
	}

	marked := strings.Replace(changed, "{name: web}", "{name: web, annotations: {addons.kubermatic.k8c.io/update: recreate}}", 1)
	again := l.Install(l.Prepare(marked), inventory)
	if again[0].UID == inventory[0].UID {
		t.Error("the object marked recreate was not made anew")
	}
}

// AC45: A refusal repeats no value of a Secret. It fails if problemOf repeats the API server's text for a Secret, or
// does not mask values.
func TestRefusalsKeepValuesToThemselves(t *testing.T) {
	for name, test := range map[string]struct{ manifest, says string }{
		"secret":      {`{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {key: "hunter-two!"}}`, "is a Secret"},
		"schema":      {strings.Replace(lab.Deployment, "value: hunter-two", "valeu: hunter-two", 1), "valeu"},
		"wrong type":  {strings.Replace(lab.Deployment, "value: hunter-two", "value: {a: hunter-two}", 1), "KEY"},
		"bad content": {strings.Replace(lab.Deployment, "app: web}", "app: -hunter-two}", 1), "spec.selector"},
	} {
		t.Run(name, func(t *testing.T) {
			l := lab.New(t)
			l.Namespace()
			progress := l.Rollout(l.Prepare(test.manifest), nil, apply.RolloutOptions{})
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

// TestKindNotServedIsHeldBack fails if an unserved kind stops the rollout, or its object gets no namespace once it is
// served.
func TestKindNotServedIsHeldBack(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	parts := strings.Split(lab.Widgets, "\n---\n")
	addon := strings.Replace(parts[0], ", namespace: NAME", "", 1) + "\n---\n" + parts[2] + "\n---\n" + strings.Split(everyStage, "\n---\n")[0]
	objects := l.Prepare(addon)
	options := apply.RolloutOptions{TargetNamespace: l.Unique}

	progress := l.Rollout(objects, nil, options)
	if diff := cmp.Diff([]string{"Widget first: KindNotServed"}, lab.Reasons(progress.Refused)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if progress.Complete || progress.Written != 2 || l.Get(lab.ConfigMaps, l.Unique, "settings") == nil {
		t.Error("the rest has to be applied, later stages too, and the rollout not to be complete")
	}

	l.Create(lab.Definitions, "", parts[1])
	l.Eventually("the kind is served", func() bool {
		return l.Rollout(objects, progress.Inventory, options).Complete
	})
	if l.Get(l.Widgets(), l.Unique, "first") == nil {
		t.Error("the object is not in the target namespace")
	}
}

// TestKindsThatAreNotServedAreDistinguished fails if a misspelt kind, one of another version, and one of an unknown group
// have the same message, and if a kind that stores no objects, or a List without items, is not reported as such.
func TestKindsThatAreNotServedAreDistinguished(t *testing.T) {
	for manifest, says := range map[string]string{
		"{apiVersion: v1, kind: LimitRang, metadata: {name: a}}":                                    `serves no kind "LimitRang" in v1: did you mean "LimitRange"?`,
		"{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: a}}":              `serves PodDisruptionBudget in policy/v1, and not in policy/v1beta1`,
		"{apiVersion: shop.example.com/v1, kind: Order, metadata: {name: a}}":                       `does not serve shop.example.com/v1: install the CRD or API server of the kind`,
		"{apiVersion: apps/v1, kind: Whatever, metadata: {name: a}}":                                `serves no kind "Whatever" in apps/v1: correct the kind`,
		"{apiVersion: authorization.k8s.io/v1, kind: SelfSubjectAccessReview, metadata: {name: a}}": `stores no objects of it`,
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			l := lab.New(t)
			l.Namespace()
			progress := l.Rollout(l.Prepare(manifest), nil, apply.RolloutOptions{TargetNamespace: l.Unique})
			if len(progress.Refused) != 1 || !strings.Contains(progress.Refused[0].Message, says) {
				t.Errorf("got %+v", progress.Refused)
			}
		})
	}
}

// TestMissingNamespaceIsWaitedFor fails if checkNamespaces is left out: the ClusterRole is written before the missing
// namespace is found.
func TestMissingNamespaceIsWaitedFor(t *testing.T) {
	l := lab.New(t)
	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NAME}\n---\n"
	objects := l.Prepare(role + lab.Settings)
	rollout := apply.NewRollout(l.Owner, objects, nil, apply.RolloutOptions{})
	writes := l.Calls.During("PATCH", func() {
		progress := lab.Must(rollout.Advance(t.Context(), l.Target))(t)
		if diff := cmp.Diff([]string{"ConfigMap settings: NamespaceMissing"}, lab.Reasons(progress.Waiting)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	if len(writes) > 0 {
		t.Errorf("written before the namespace was there: %q", writes)
	}
	l.Namespace()
	if !lab.Must(rollout.Advance(t.Context(), l.Target))(t).Complete {
		t.Error("the rollout does not go on when the namespace is there")
	}
}

// TestTerminatingNamespaceIsWaitedFor fails if awaitEnd or the namespace's deletionTimestamp is not read.
func TestTerminatingNamespaceIsWaitedFor(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	l.Create(lab.ConfigMaps, l.Unique, `{apiVersion: v1, kind: ConfigMap, metadata: {name: holder, finalizers: [example.com/hold]}}`)
	l.Delete(lab.Namespaces, "", l.Unique)
	rollout := apply.NewRollout(l.Owner, l.Prepare(lab.Settings, lab.CreateNamespace), nil, apply.RolloutOptions{})
	progress := lab.Must(rollout.Advance(t.Context(), l.Target))(t)
	if diff := cmp.Diff([]string{"Namespace " + l.Unique + ": NamespaceTerminating"}, lab.Reasons(progress.Waiting)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if cause := progress.Waiting[0].Cause; cause != kubermaticv1.ReasonBeingDeleted {
		t.Errorf("the cause is %q", cause)
	}
	l.Edit(lab.ConfigMaps, "holder", `{metadata: {finalizers: null}}`)
	l.Eventually("the rollout in a new namespace", func() bool {
		return lab.Must(rollout.Advance(t.Context(), l.Target))(t).Complete
	})
}

// TestExistingNamespaceIsUsedNotOwned fails if an existing Namespace gets into the inventory, or is written to.
func TestExistingNamespaceIsUsedNotOwned(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	before := l.Get(lab.Namespaces, "", l.Unique)
	inventory := l.Install(l.Prepare(lab.Settings, lab.CreateNamespace), nil)
	if len(inventory) != 1 || inventory[0].Kind != "ConfigMap" {
		t.Errorf("the inventory is %v, want the ConfigMap alone", inventory)
	}
	if diff := cmp.Diff(before, l.Get(lab.Namespaces, "", l.Unique)); diff != "" {
		t.Errorf("the namespace changed:\n%s", diff)
	}
}

// TestRecordedUID fails if resolveConflict does not distinguish a deleted object from a replaced one: "gone" is applied
// again, "replaced" is refused.
func TestRecordedUID(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	inventory := l.Install(l.Prepare(lab.Settings), nil)
	l.Delete(lab.ConfigMaps, l.Unique, "settings")
	again := l.Install(l.Prepare(lab.Settings), inventory.Unconfirmed())
	if again[0].UID == inventory[0].UID {
		t.Error("the object that was gone still has its UID")
	}

	l.Delete(lab.ConfigMaps, l.Unique, "settings")
	l.Create(lab.ConfigMaps, l.Unique, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: mine}}`)
	progress := l.Rollout(l.Prepare(lab.Settings), again.Unconfirmed(), apply.RolloutOptions{})
	if diff := cmp.Diff([]string{"ConfigMap settings: ObjectExists"}, lab.Reasons(progress.Refused)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNamespaceMadeMeanwhileIsUsed fails if a namespace that another client creates between our read and our write is a
// conflict instead of an existing one.
func TestNamespaceMadeMeanwhileIsUsed(t *testing.T) {
	l := lab.New(t)
	var first sync.Once
	l.Calls.Before = func(call string) {
		if call == "PATCH /api/v1/namespaces/"+l.Unique {
			first.Do(func() {
				l.Create(lab.Namespaces, "", `{apiVersion: v1, kind: Namespace, metadata: {name: NAME, labels: `+
					`{addons.kubermatic.k8c.io/created-by: another}}}`)
			})
		}
	}
	progress := l.Rollout(l.Prepare(lab.Settings, lab.CreateNamespace), nil, apply.RolloutOptions{})
	if !progress.Complete || len(progress.Inventory) != 1 {
		t.Errorf("refused %v, inventory %v; want the namespace used and not owned", progress.Refused, progress.Inventory)
	}
}
