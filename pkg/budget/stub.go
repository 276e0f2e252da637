package budget

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// What a stub keeps of labels and annotations: our own, so many bytes together and of a value.
const (
	mostMarks   = 16 << 10
	longestMark = 1 << 10
)

// Size is what the whole object of a stub would take, in bytes; false: this is no stub. It counts for objects of a cache alone: in others,
// people may have set the annotation.
func Size(object metav1.Object) (bytes int64, isStub bool) {
	bytes, err := strconv.ParseInt(object.GetAnnotations()[v1.AnnotationStub], 10, 64)
	return bytes, err == nil && bytes > 0
}

// IsStub says whether an object of a cache is a stub.
func IsStub(object metav1.Object) bool {
	_, isStub := Size(object)
	return isStub
}

func mark(object metav1.Object, bytes int64) {
	annotations := ours(object.GetAnnotations())
	annotations[v1.AnnotationStub] = strconv.FormatInt(bytes, 10)
	object.SetAnnotations(annotations)
	object.SetLabels(ours(object.GetLabels()))
}

func unmark(object metav1.Object) {
	if annotations := object.GetAnnotations(); annotations != nil {
		delete(annotations, v1.AnnotationStub)
	}
}

func ours(of map[string]string) map[string]string {
	kept, sum := map[string]string{}, 0
	for _, key := range slices.Sorted(maps.Keys(of)) {
		value := of[key]
		if strings.HasPrefix(key, v1.Prefix) && len(value) <= longestMark && sum+len(key)+len(value) <= mostMarks {
			kept[key] = value
			sum += len(key) + len(value)
		}
	}
	return kept
}
