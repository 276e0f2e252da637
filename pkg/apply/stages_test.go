package apply_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/ownership"
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

// Red when the stages run in another order, or removal is not in reverse.
func TestStagesInOrderAndRemovalInReverse(t *testing.T) {
	l := newLab(t)
	var inventory ownership.Inventory
	writes := l.calls.during("PATCH", func() { inventory = l.install(l.prepare(everyStage), nil) })
	want := []string{
		"PATCH /api/v1/namespaces/" + l.name,
		"PATCH /apis/rbac.authorization.k8s.io/v1/clusterroles/" + l.name,
		"PATCH /api/v1/namespaces/" + l.name + "/configmaps/settings",
		"PATCH /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/" + l.name,
	}
	if diff := cmp.Diff(want, writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	deletes := l.calls.during("DELETE", func() { l.remove(inventory, apply.RemoveOptions{}) })
	deletes = slices.Compact(deletes) // the namespace is asked to go again while it goes
	slices.Reverse(want)
	for i := range want {
		want[i] = strings.Replace(want[i], "PATCH", "DELETE", 1)
	}
	if diff := cmp.Diff(want, deletes); diff != "" {
		t.Errorf("deletes (-want +got):\n%s", diff)
	}
}

// RS31. Red when annotations of the client side are written (the API server refuses annotations above 256 KiB), or when a
// definition is refused for its size.
func TestDefinitionsOfSeveralHundredKiB(t *testing.T) {
	l := newLab(t)
	var properties strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&properties, "p%d: {type: string, description: %q}, ", i, strings.Repeat("long ", 20))
	}
	schema := "schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {" + properties.String() + "}}}}}"
	manifests := strings.Replace(widgets, "schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}", schema, 1)
	manifests = strings.Replace(manifests, "size: 3", "p1: x", 1)
	if len(manifests) < 400<<10 {
		t.Fatalf("the manifests have %d bytes only", len(manifests))
	}
	second := strings.Replace(strings.Split(manifests, "\n---\n")[1], "{kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}",
		"{kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}", 1)
	second = strings.Replace(second, "{name: widgets.", "{name: gadgets.", 1)
	var inventory ownership.Inventory
	writes := l.calls.during("PATCH", func() { inventory = l.install(l.prepare(manifests+"\n---\n"+second), nil) })
	if len(writes) != 5 {
		t.Errorf("written by %q, want each of the 5 objects at the first try", writes)
	}
	l.remove(inventory, apply.RemoveOptions{CRDs: whenUnused})
}

// RS24. Red when the deletionTimestamp in an answer, or in what claim reads, is not looked at: the custom resource is refused
// instead of waiting, or the definition is never made anew.
func TestTerminatingDefinitionIsWaitedFor(t *testing.T) {
	l := newLab(t)
	objects := l.prepare(widgets)
	inventory := l.install(objects, nil)
	l.edit(l.widgets(), "first", `{metadata: {finalizers: [example.com/hold]}}`)
	definition := "widgets." + l.name + ".example.com"
	l.delete(definitions, "", definition)

	rollout := apply.NewRollout(l.owner, objects, inventory.Doubted(), apply.RolloutOptions{})
	progress := must(rollout.Advance(t.Context(), l.target))(t)
	if diff := cmp.Diff([]string{"CustomResourceDefinition " + definition + ": WaitingForStage"}, reasons(progress.Waiting)); diff != "" {
		t.Fatalf("waiting (-want +got):\n%s", diff)
	}
	if message := progress.Waiting[0].Message; !strings.Contains(message, "finalizer") {
		t.Errorf("the message does not say what holds it: %s", message)
	}

	l.eventually("the hold is taken off", func() bool { // while a definition changes, its kind is not served for a moment
		return l.tryEdit(l.widgets(), "first", `{metadata: {finalizers: null}}`) == nil
	})
	l.eventually("the rollout with a new definition", func() bool {
		return must(rollout.Advance(t.Context(), l.target))(t).Complete
	})
}

// RS27. Red when a kind that is not known counts as gone while its API server is down.
func TestPartialDiscoveryRemovesNothing(t *testing.T) {
	l := newLab(t)
	group := l.name + ".example.com"
	l.create(apiServices, "", `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.NAME.example.com}, spec: `+
		`{group: NAME.example.com, version: v1, groupPriorityMinimum: 10, versionPriority: 10, service: {namespace: default, name: none}}}`)
	defer l.delete(apiServices, "", "v1."+group)
	l.eventually("the APIService is looked at", func() bool {
		conditions := l.get(apiServices, "", "v1."+group).Object["status"]
		return strings.Contains(fmt.Sprint(conditions), "Available")
	})
	inventory := ownership.Inventory{{Key: ownership.Key{Group: group, Kind: "Widget", Namespace: "default", Name: "first"}, Version: "v1", UID: "1"}}

	left, _, err := apply.Prune(t.Context(), l.target, inventory, apply.PruneOptions{Owner: l.owner, Total: 10})
	if err != nil || len(left) != 1 {
		t.Errorf("prune left %v, %v; want the entry", left, err)
	}
	left, blocked, err := apply.Remove(t.Context(), l.target, inventory, apply.RemoveOptions{Owner: l.owner})
	if err != nil || len(left) != 1 || len(blocked) != 1 {
		t.Errorf("remove left %v, blocked %v, %v; want the entry", left, blocked, err)
	}
	if drift := l.drift(inventory); len(drift) > 0 {
		t.Errorf("got drift %v of a kind that nobody can tell about", drift)
	}

	gone := ownership.Inventory{{Key: ownership.Key{Group: "never.example.com", Kind: "Widget", Name: "x"}, Version: "v1", UID: "1"}}
	left, _, err = apply.Remove(t.Context(), l.target, gone, apply.RemoveOptions{Owner: l.owner})
	if err != nil || len(left) > 0 {
		t.Errorf("remove left %v, %v; want an object gone with its kind to be done with", left, err)
	}
}

// RS25. Red when isKindTrouble is always false: one kind's conversion webhook would hold health and drift of all others up.
func TestBrokenConversionHoldsNothingElseUp(t *testing.T) {
	l := newLab(t)
	objects := l.prepare(widgets)
	inventory := l.install(objects, nil)
	l.breakConversion()
	at := slices.IndexFunc(inventory, func(entry ownership.Entry) bool { return entry.Kind == "Widget" })
	inventory[at].Version = "v2"
	l.delete(configMaps, l.name, "settings")

	l.eventually("the custom resource can't be converted", func() bool {
		return strings.Contains(states(l.assess(inventory)), "Widget:Unknown")
	})
	if got := driftReasons(l.drift(inventory)); got != "Missing FieldsLost" {
		t.Errorf("got drift %q, want the missing ConfigMap and the edited definition", got)
	}
}

// breakConversion gives the widgets a second version, by a webhook that nobody answers. It is mended at the end of the test, since no
// namespace of the API server can end until then.
func (l *lab) breakConversion() {
	l.Helper()
	live := l.get(definitions, "", "widgets."+l.name+".example.com")
	spec := live.Object["spec"].(map[string]any)
	second := maps.Clone(spec["versions"].([]any)[0].(map[string]any))
	second["name"], second["storage"] = "v2", false
	spec["versions"] = append(spec["versions"].([]any), second)
	spec["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"url": "https://127.0.0.1:1/"},
	}}
	must(l.others.Resource(definitions).Update(l.Context(), live, metav1.UpdateOptions{}))(l)
	l.Cleanup(func() {
		mended := []byte(`{"spec": {"conversion": {"strategy": "None", "webhook": null}}}`)
		_, err := l.others.Resource(definitions).Patch(context.Background(), live.GetName(), types.MergePatchType, mended, metav1.PatchOptions{})
		if err != nil {
			l.Error(err)
		}
	})
}
