package fieldsets

import (
	"bytes"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// ReplicasPath is the field that autoscalers write through the scale subresource.
const (
	ReplicasPath     = ".spec.replicas"
	scaleSubresource = "scale"
)

// Of is the field set of a manager that applies, as the API server recorded it; nil if it has none. It is not copied.
func Of(managed []metav1.ManagedFieldsEntry, manager string) json.RawMessage {
	for i := range managed {
		entry := &managed[i]
		if entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" &&
			entry.FieldsV1 != nil {
			return entry.FieldsV1.GetRawBytes()
		}
	}
	return nil
}

// PerByte is more than how many bytes our field set in an answer has for each byte that was sent: for each field the API
// server writes its name, the marks of a path and, of lists, the keys once more. A list of digits, each of which becomes a key,
// makes most of it, five times its text.
const PerByte = 6

// fieldsSurplus is what a small field set may have besides, in bytes.
const fieldsSurplus = 1 << 10

// Believable is our field set of an answer to an object that took so many bytes to send; a copy. False says that no API server
// makes it of such an object; it is not to be used then.
func Believable(managed []metav1.ManagedFieldsEntry, manager string, sent int) (fields json.RawMessage, ok bool) {
	raw := Of(managed, manager)
	if len(raw) == 0 {
		return nil, true
	}
	if len(raw) > PerByte*sent+fieldsSurplus || !json.Valid(raw) {
		return nil, false
	}
	return bytes.Clone(raw), true
}

// maxScaleFields is more than an autoscaler owns through the scale subresource, which has one field, in bytes.
const maxScaleFields = 4 << 10

// liveSurplus is how much larger than twice the recorded set a live set of ours may be, in bytes. Nobody else writes under our name;
// one that is larger is not compared.
const liveSurplus = 16 << 10

const maxLost = 5

// Lost are the first few of the recorded fields that the live set of our manager does not have any more. Replicas that were
// taken over through the scale subresource are not lost: they belong to an autoscaler now.
func Lost(recorded, live json.RawMessage, scaled bool) (lost []string) {
	if len(recorded) == 0 || bytes.Equal(recorded, live) || len(live) > 2*len(recorded)+liveSurplus {
		return nil
	}
	for path := range Parse(recorded).Difference(Parse(live)).All() {
		if len(lost) == maxLost {
			break
		}
		if text := path.String(); !scaled || text != ReplicasPath {
			lost = append(lost, text)
		}
	}
	return lost
}

// IsScaled says whether somebody owns the replicas through the scale subresource.
func IsScaled(managed []metav1.ManagedFieldsEntry) bool {
	for i := range managed {
		if managed[i].Subresource != scaleSubresource || managed[i].FieldsV1 == nil {
			continue
		}
		if raw := managed[i].FieldsV1.GetRawBytes(); len(raw) <= maxScaleFields && Has(raw, ReplicasPath) {
			return true
		}
	}
	return false
}

// WithReplicas is a field set of ours that has the replicas: they are left to whoever scales for as long as somebody does.
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

// Among are those of the fields that a field set has.
func Among(raw []byte, fields []string) sets.Set[string] {
	return sets.New(search(raw, slices.Sorted(slices.Values(fields)))...)
}

// Has says whether a field set has a field, by its text.
func Has(raw []byte, field string) bool { return len(search(raw, []string{field})) > 0 }

// OwnersOf are the managers, other than ours, that own fields; one for each field that somebody owns.
func OwnersOf(managed []metav1.ManagedFieldsEntry, fields []string, ours string) map[string]string {
	wanted := slices.Sorted(slices.Values(fields))
	owners := make(map[string]string, len(wanted))
	for i := range managed {
		if managed[i].Manager == ours || managed[i].FieldsV1 == nil {
			continue
		}
		for _, field := range search(managed[i].FieldsV1.GetRawBytes(), wanted) {
			if _, owned := owners[field]; !owned {
				owners[field] = managed[i].Manager
			}
		}
	}
	return owners
}

// SizeOf is the size of all field sets together, in bytes.
func SizeOf(managed []metav1.ManagedFieldsEntry) (size int) {
	for i := range managed {
		if managed[i].FieldsV1 != nil {
			size += len(managed[i].FieldsV1.GetRawBytes())
		}
	}
	return size
}
