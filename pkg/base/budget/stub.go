package budget

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

const (
	// mostMarks is how many bytes of our own annotations, and as many of labels, a stub keeps, short ones first.
	mostMarks = 16 << 10
	// mostReferences is how many bytes of references to owners, and of finalizers, a stub keeps: no API server bounds them.
	mostReferences = 8 << 10
	// ownerBytes are those of a reference without its texts.
	ownerBytes = 128
)

// Size is the size of the whole object of a stub, in bytes; false: this is no stub. It is valid only for objects of a
// cache: in others, users may have set the annotation.
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
	references, finalizers := 0, 0
	for _, one := range object.GetOwnerReferences() {
		references += ownerBytes + len(one.APIVersion) + len(one.Kind) + len(one.Name) + len(one.UID)
	}
	for _, one := range object.GetFinalizers() {
		finalizers += len(one)
	}
	if references > mostReferences {
		object.SetOwnerReferences(nil)
	}
	if finalizers > mostReferences {
		kept := slices.DeleteFunc(object.GetFinalizers(), func(one string) bool {
			return one != v1.FinalizerCleanupSet && one != v1.FinalizerCleanupInstallation && one != v1.FinalizerCoreProtection
		})
		slices.Sort(kept)
		object.SetFinalizers(slices.Compact(kept))
	}
}

func unmark(object metav1.Object) {
	if annotations := object.GetAnnotations(); annotations != nil {
		delete(annotations, v1.AnnotationStub)
	}
}

func ours(of map[string]string) map[string]string {
	kept, sum := map[string]string{}, 0
	shortFirst := func(a, b string) int { return cmp.Or(len(of[a])-len(of[b]), cmp.Compare(a, b)) }
	for _, key := range slices.SortedFunc(maps.Keys(of), shortFirst) {
		value := of[key]
		if strings.HasPrefix(key, v1.Prefix) && sum+len(key)+len(value) <= mostMarks {
			kept[key] = value
			sum += len(key) + len(value)
		}
	}
	return kept
}
