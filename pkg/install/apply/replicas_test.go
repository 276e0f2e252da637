package apply_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/test/lab"
)

// A client that scales to 0 leaves the replicas without an owner, and so does a client that then scales to another
// number. It fails if ScalingOf only considers owners (drift, and a repair undoes it); if its kinds lack one of these;
// and if leaveScaled does not read them, which undoes it with a repair of another field, and with an upgrade.
func TestReplicasScaledByWayOfZeroStay(t *testing.T) {
	for _, test := range []struct {
		version, kind, resource string
		scale                   []int64
	}{
		{"apps/v1", "Deployment", "deployments", []int64{0}},
		{"apps/v1", "Deployment", "deployments", []int64{4, 0, 2}},
		{"apps/v1", "StatefulSet", "statefulsets", []int64{0, 2}},
		{"apps/v1", "ReplicaSet", "replicasets", []int64{0}},
		{"v1", "ReplicationController", "replicationcontrollers", []int64{0}},
	} {
		t.Run(fmt.Sprint(test.kind, test.scale), func(t *testing.T) {
			l := lab.New(t)
			l.Namespace()
			where := schema.FromAPIVersionAndKind(test.version, "").GroupVersion().WithResource(test.resource)
			manifest := strings.NewReplacer("apps/v1", test.version, "Deployment", test.kind).Replace(lab.Deployment)
			if test.version == "v1" {
				manifest = strings.Replace(manifest, "{matchLabels: {app: web}}", "{app: web}", 1)
			}
			inventory, want := l.Update(manifest, nil), test.scale[len(test.scale)-1]
			for _, replicas := range test.scale {
				l.Edit(where, "web", fmt.Sprintf(`{spec: {replicas: %d}}`, replicas), "scale")
			}
			insist := func(after string) {
				t.Helper()
				live := l.Get(where, l.Unique, "web")
				replicas, found, _ := lab.NestedInt(live, "spec", "replicas")
				if drift := l.Drift(inventory); replicas != want || !found || len(drift) > 0 {
					t.Errorf("after %s there are %d replicas, want %d, and drift %v", after, replicas, want, drift)
				}
			}
			insist("scaling")

			l.Edit(where, "web", `{spec: {minReadySeconds: 3}, metadata: {labels: {addons.kubermatic.k8c.io/installation: null}}}`)
			applied := apply.Applied{Objects: l.Prepare(manifest), Inventory: inventory}
			inventory = lab.Must(apply.Repair(t.Context(), l.Target, l.Owner, lab.KeysOf(l.Drift(inventory)), applied))(t).Inventory
			insist("a repair")

			inventory = l.Update(strings.Replace(manifest, "{name: web}", "{name: web, annotations: {a: b}}", 1), inventory)
			insist("an upgrade")

			want = 3
			inventory = l.Update(strings.Replace(manifest, "replicas: 1", "replicas: 3", 1), inventory)
			insist("a change of the replicas")
		})
	}
}

// Replicas that were scaled to 0 return to the add-on with an edit, and when a client removes the owners of all fields:
// that hides no drift. It fails if an editor's replicas count as scaled, or those of an object that has no owners (the
// last lines of ScalingOf).
func TestReplicasOfNobodyArePutBackWhereOthersWroteThem(t *testing.T) {
	for name, edits := range map[string][]string{
		"an edit":       {`{spec: {replicas: 3}}`},
		"wiped owners":  {`{metadata: {managedFields: [{}]}}`},
		"wiped, edited": {`{metadata: {managedFields: [{}]}}`, `{spec: {replicas: 7, template: {spec: {containers: [{name: web, image: other}]}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			l := lab.New(t)
			l.Namespace()
			inventory := l.Update(lab.Deployment, nil)
			l.Edit(lab.Deployments, "web", `{spec: {replicas: 0}}`, "scale")
			for _, edit := range edits {
				l.Edit(lab.Deployments, "web", edit)
			}
			drift := l.Drift(inventory)
			applied := apply.Applied{Objects: l.Prepare(lab.Deployment), Inventory: inventory}
			repaired := lab.Must(apply.Repair(t.Context(), l.Target, l.Owner, lab.KeysOf(drift), applied))(t)
			l.ExpectReplicas("a repair", 1)
			if live := fmt.Sprint(l.Get(lab.Deployments, l.Unique, "web").Object["spec"]); !strings.Contains(live, "image:example.com/web:1") {
				t.Errorf("the image was not put back: %s", live)
			}
			if again := l.Drift(repaired.Inventory); len(drift) != 1 || len(again) > 0 {
				t.Errorf("drift %v, and after its repair %v", drift, again)
			}
		})
	}
}
