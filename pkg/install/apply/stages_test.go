package apply_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/removal"
	"github.com/trellis-addons/trellis/test/lab"
	"github.com/trellis-addons/trellis/test/long"
)

const everyStage = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NAME}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAME}
---
apiVersion: v1
kind: Namespace
metadata: {name: NAME}`

// TestStagesInOrderAndRemovalInReverse fails if the stages run in another order, or removal is not in reverse.
func TestStagesInOrderAndRemovalInReverse(t *testing.T) {
	l := lab.New(t)
	var inventory ownership.Inventory
	writes := l.Calls.During("PATCH", func() { inventory = l.Install(l.Prepare(everyStage), nil) })
	want := []string{
		"PATCH /api/v1/namespaces/" + l.Unique,
		"PATCH /apis/rbac.authorization.k8s.io/v1/clusterroles/" + l.Unique,
		"PATCH /api/v1/namespaces/" + l.Unique + "/configmaps/settings",
		"PATCH /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/" + l.Unique,
	}
	if diff := cmp.Diff(want, writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	deletes := l.Calls.During("DELETE", func() { l.Remove(inventory, removal.RemoveOptions{}) })
	deletes = slices.Compact(deletes) // the deletion of the namespace is repeated while it is being deleted
	slices.Reverse(want)
	for i := range want {
		want[i] = strings.Replace(want[i], "PATCH", "DELETE", 1)
	}
	if diff := cmp.Diff(want, deletes); diff != "" {
		t.Errorf("deletes (-want +got):\n%s", diff)
	}
}

// RS31: Definitions that are too large for an annotation are applied at the first attempt. It fails if client-side
// annotations are written (the API server refuses annotations above 256 KiB), or if a definition is refused for its
// size.
func TestDefinitionsOfSeveralHundredKiB(t *testing.T) {
	long.Heavy(t)
	l := lab.New(t)
	var properties strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&properties, "p%d: {type: string, description: %q}, ", i, strings.Repeat("long ", 20))
	}
	schema := "schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {" + properties.String() + "}}}}}"
	manifests := strings.Replace(lab.Widgets, "schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}", schema, 1)
	manifests = strings.Replace(manifests, "size: 3", "p1: x", 1)
	if len(manifests) < 400<<10 {
		t.Fatalf("the manifests have %d bytes only", len(manifests))
	}
	second := strings.Replace(strings.Split(manifests, "\n---\n")[1], "{kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}",
		"{kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}", 1)
	second = strings.Replace(second, "{name: widgets.", "{name: gadgets.", 1)
	var inventory ownership.Inventory
	writes := l.Calls.During("PATCH", func() { inventory = l.Install(l.Prepare(manifests+"\n---\n"+second), nil) })
	if len(writes) != 5 {
		t.Errorf("written by %q, want each of the 5 objects at the first try", writes)
	}
	l.Remove(inventory, removal.RemoveOptions{CRDs: lab.WhenUnused})
}

// RS24: A definition that is being deleted is awaited. It fails if the deletionTimestamp in an answer, or in the object
// of readExisting, is ignored: the custom resource is refused instead of waiting, or the definition is never recreated.
func TestTerminatingDefinitionIsWaitedFor(t *testing.T) {
	l := lab.New(t)
	objects := l.Prepare(lab.Widgets)
	inventory := l.Install(objects, nil)
	l.Edit(l.Widgets(), "first", `{metadata: {finalizers: [example.com/hold]}}`)
	definition := "widgets." + l.Unique + ".example.com"
	l.Delete(lab.Definitions, "", definition)

	rollout := apply.NewRollout(l.Owner, objects, inventory.Unconfirmed(), apply.RolloutOptions{})
	progress := lab.Must(rollout.Advance(t.Context(), l.Target))(t)
	if diff := cmp.Diff([]string{"CustomResourceDefinition " + definition + ": WaitingForStage"}, lab.Reasons(progress.Waiting)); diff != "" {
		t.Fatalf("waiting (-want +got):\n%s", diff)
	}
	if message := progress.Waiting[0].Message; !strings.Contains(message, "finalizer") {
		t.Errorf("the message does not say what holds it: %s", message)
	}

	l.Eventually("the hold is taken off", func() bool { // while a definition changes, its kind is not served for a moment
		return l.TryEdit(l.Widgets(), "first", `{metadata: {finalizers: null}}`) == nil
	})
	l.Eventually("the rollout with a new definition", func() bool {
		return lab.Must(rollout.Advance(t.Context(), l.Target))(t).Complete
	})
}
