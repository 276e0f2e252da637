package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// replicasOf are those of an object as rendered; nil where it has none.
func replicasOf(object *unstructured.Unstructured) *int64 {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "replicas")
	switch typed := value.(type) {
	case int64:
		return &typed
	case float64:
		return new(int64(typed))
	}
	return nil
}

// changesReplicas says whether the add-on has other replicas than those that were applied last, as far as that is known.
func (i *item) changesReplicas() bool {
	before, now := i.entry.Replicas, i.wanted.Replicas
	return i.entry.Applied && now != nil && (before == nil || *before != *now)
}
