package fieldsets

import (
	"bytes"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Of is the field set of a manager that applies, not copied; nil if it has none. WrittenAt is when it last changed
// the object, by the API server's clock, in seconds since 1970; 0 if unknown. A write without changes does not change
// it.
func Of(managed []metav1.ManagedFieldsEntry, manager string) (fields json.RawMessage, writtenAt int64) {
	for i := range managed {
		entry := &managed[i]
		if entry.Manager != manager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" ||
			entry.FieldsV1 == nil {
			continue
		}
		if !entry.Time.IsZero() {
			writtenAt = entry.Time.Unix()
		}
		return entry.FieldsV1.GetRawBytes(), writtenAt
	}
	return nil, 0
}

// PerByte bounds the bytes of our field set for each byte sent. A list of digits has the most, five times its text:
// the API server writes each as a key, with the marks of a path.
const PerByte = 6

// fieldsSurplus is what a small field set may have in addition, in bytes.
const fieldsSurplus = 1 << 10

// Believable copies our field set out of an answer, with its time; false if no API server makes such a set from that
// many bytes.
func Believable(managed []metav1.ManagedFieldsEntry, manager string, sent int) (fields json.RawMessage, writtenAt int64, ok bool) {
	raw, writtenAt := Of(managed, manager)
	if len(raw) == 0 {
		return nil, 0, true
	}
	if len(raw) > PerByte*sent+fieldsSurplus || !json.Valid(raw) {
		return nil, 0, false
	}
	return bytes.Clone(raw), writtenAt, true
}

// liveSurplus, in bytes: live sets of more than this and twice the recorded set are not compared.
const liveSurplus = 16 << 10

const maxLost = 5

// Lost are the first recorded fields that the live set lacks. Replicas that were set through the scale
// subresource are not lost (Scaling).
func Lost(recorded, live json.RawMessage, scaled bool) (lost []string) {
	if len(recorded) == 0 || bytes.Equal(recorded, live) || len(live) > 2*len(recorded)+liveSurplus {
		return nil
	}
	// Set.All can't be left early: it continues after a break, which Go answers with a panic.
	Parse(recorded).Difference(Parse(live)).Iterate(func(path fieldpath.Path) {
		if len(lost) == maxLost {
			return
		}
		if text := path.String(); !scaled || text != ReplicasPath {
			lost = append(lost, text)
		}
	})
	return lost
}

// Among are the fields that a field set has.
func Among(raw []byte, fields []string) sets.Set[string] {
	return sets.New(search(raw, slices.Sorted(slices.Values(fields)))...)
}

// Has says whether a field set has a field, by its text.
func Has(raw []byte, field string) bool { return len(search(raw, []string{field})) > 0 }

// OwnersOf are other managers that own the fields, one for each owned field.
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
