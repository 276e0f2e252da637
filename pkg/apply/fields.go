package apply

import (
	"bytes"
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// replicasPath is the field that autoscalers write through the scale subresource.
const (
	replicasPath     = ".spec.replicas"
	scaleSubresource = "scale"
)

// ownFields is the field set of a manager that applies, as the API server recorded it; nil if it has none.
func ownFields(managed []metav1.ManagedFieldsEntry, manager string) json.RawMessage {
	for i := range managed {
		entry := &managed[i]
		if entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" &&
			entry.FieldsV1 != nil {
			return bytes.Clone(entry.FieldsV1.GetRawBytes())
		}
	}
	return nil
}

// parseFields reads a field set; one that can't be read is empty.
func parseFields(raw []byte) *fieldpath.Set {
	set := &fieldpath.Set{}
	if len(raw) == 0 || set.FromJSON(bytes.NewReader(raw)) != nil {
		return fieldpath.NewSet()
	}
	return set
}

// paths are the texts of all fields of a set, in the form that the API server names them in conflicts.
func paths(set *fieldpath.Set) map[string]bool {
	texts := map[string]bool{}
	set.Iterate(func(path fieldpath.Path) { texts[path.String()] = true })
	return texts
}

// lostFields are the recorded fields that the live set of our manager does not have any more. Replicas that were taken over
// through the scale subresource are not lost: they belong to an autoscaler now.
func lostFields(recorded, live json.RawMessage, scaled bool) []string {
	if bytes.Equal(recorded, live) {
		return nil
	}
	var lost []string
	parseFields(recorded).Difference(parseFields(live)).Iterate(func(path fieldpath.Path) {
		if text := path.String(); !scaled || text != replicasPath {
			lost = append(lost, text)
		}
	})
	return lost
}

// isScaled says whether somebody owns the replicas through the scale subresource.
func isScaled(managed []metav1.ManagedFieldsEntry) bool {
	for i := range managed {
		if managed[i].Subresource == scaleSubresource && managed[i].FieldsV1 != nil &&
			paths(parseFields(managed[i].FieldsV1.GetRawBytes()))[replicasPath] {
			return true
		}
	}
	return false
}

// fieldOwner is the manager, other than ours, that owns a field; "" if nobody does.
func fieldOwner(managed []metav1.ManagedFieldsEntry, field, ours string) string {
	for i := range managed {
		if managed[i].Manager != ours && managed[i].FieldsV1 != nil &&
			paths(parseFields(managed[i].FieldsV1.GetRawBytes()))[field] {
			return managed[i].Manager
		}
	}
	return ""
}

// conflictingFields are the fields that a refused apply names; none where the conflict is about the UID.
func conflictingFields(err error) (fields []string) {
	for _, cause := range causesOf(err) {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			fields = append(fields, cause.Field)
		}
	}
	return fields
}

func causesOf(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}
