package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/fieldsets"
)

func replicasOf(object *unstructured.Unstructured) *int64 {
	return numberAt(object, "spec", "replicas")
}

func numberAt(object *unstructured.Unstructured, path ...string) *int64 {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	switch typed := value.(type) {
	case int64:
		return &typed
	case float64:
		return new(int64(typed))
	}
	return nil
}

func (i *item) changesReplicas() bool {
	before, now := i.entry.Replicas, i.wanted.Replicas
	return i.entry.Applied && now != nil && (before == nil || *before != *now)
}

// leavesReplicas says whether the object has replicas, and whether the record leaves them to an autoscaler.
func (i *item) leavesReplicas() (has, leaves bool) {
	_, has, _ = unstructured.NestedFieldNoCopy(i.object.Object, "spec", "replicas")
	return has, has && !fieldsets.Has(i.entry.Fields, fieldsets.ReplicasPath)
}

// leaveScaled leaves out the replicas of an object that was scaled to 0, also if it was scaled again since: no manager owns them,
// so the API server would accept ours without a conflict. It reads the object, if it has replicas that the add-on leaves as they
// are.
func (w *writer) leaveScaled(ctx context.Context, client calls.Client, it *item, how *attempt) error {
	has, leaves := it.leavesReplicas()
	if !has || leaves || it.changesReplicas() || it.entry.UID == "" || !fieldsets.MayBeUnowned(it.key.GroupKind()) {
		return nil
	}
	live, err := client.Read(ctx, it.key)
	if err != nil || live == nil || live.UID != it.entry.UID { // if it is another object, the patch is refused
		return err
	}
	how.withoutReplicas = fieldsets.ScalingOf(live.ManagedFields, w.owner.FieldManager()) == fieldsets.Unowned
	return nil
}
