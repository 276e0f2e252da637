package fieldsets

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// ReplicasPath is the field that autoscalers write through the scale subresource.
const (
	ReplicasPath     = ".spec.replicas"
	scaleSubresource = "scale"
)

// replicasKey is in every field set that has replicas, at any depth.
var replicasKey = []byte(`"f:replicas"`)

// Limits of field sets that may own replicas, in bytes: more than the single field of an autoscaler needs, and than real
// objects have. A larger set that names replicas counts as an owner other than scaling.
const (
	maxScaleFields = 4 << 10
	maxOwnerFields = 16 << 10
)

// Scaling says who owns an object's replicas, as far as it shows whether they were set through the scale subresource.
type Scaling string

const (
	// NotScaled: a manager owns them in any other way, or our manager has no fields at all, such as after the owners were
	// wiped.
	NotScaled Scaling = "NotScaled"
	// Scaled: a manager owns them through the scale subresource.
	Scaled Scaling = "Scaled"
	// Unowned: no manager owns them, and our manager has other fields. That is so for an object that was scaled to 0, since a Scale
	// (autoscaling/v1) leaves a zero out; and after that with any number that it is scaled to, since no entry is added if there is
	// none (skipnonapplied.go of managedfields in k8s.io/apimachinery).
	Unowned Scaling = "Unowned"
)

// scalable are the kinds whose replicas are never absent: no client can remove them, so if no manager owns them they were scaled.
// An applier that takes them by force and leaves them out later looks the same, which is accepted. Custom resources may lose
// theirs.
var scalable = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}:  true,
	{Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "apps", Kind: "ReplicaSet"}:  true,
	{Kind: "ReplicationController"}:      true,
}

// ScalingOf reads who owns the replicas; the manager is ours.
func ScalingOf(managed []metav1.ManagedFieldsEntry, manager string) Scaling {
	owned := false
	for i := range managed {
		if managed[i].FieldsV1 == nil {
			continue
		}
		raw := managed[i].FieldsV1.GetRawBytes()
		if !bytes.Contains(raw, replicasKey) || len(raw) <= maxOwnerFields && !Has(raw, ReplicasPath) {
			continue
		}
		if managed[i].Subresource == scaleSubresource && len(raw) <= maxScaleFields {
			return Scaled
		}
		owned = true
	}
	if fields, _ := Of(managed, manager); owned || len(fields) == 0 {
		return NotScaled
	}
	return Unowned
}

// IsOf says whether objects of a kind with this result were scaled.
func (s Scaling) IsOf(kind schema.GroupKind) bool {
	return s == Scaled || s == Unowned && scalable[kind]
}

// MayBeUnowned says whether scaling may leave an object's replicas without an owner. No conflict shows that.
func MayBeUnowned(kind schema.GroupKind) bool { return scalable[kind] }

// WithReplicas adds the replicas to our field set, when a scaler has them.
func WithReplicas(raw json.RawMessage) json.RawMessage {
	set, err := Read(raw)
	if err != nil || len(raw) == 0 {
		return raw
	}
	set.Insert(fieldpath.MakePathOrDie("spec", "replicas"))
	whole, err := set.ToJSON()
	if err != nil {
		return raw
	}
	return whole
}
