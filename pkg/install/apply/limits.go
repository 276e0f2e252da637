package apply

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// Limits of an installation's objects as JSON, checked before the first write.
const (
	MaxObjectBytes = 1 << 20
	MaxTotalBytes  = 16 << 20
)

// LimitError says that the objects are too many or too large. It does not say by how much, since that would reveal
// the size of secrets in them.
type LimitError struct {
	Object *ownership.Key
	// What names the limit ("objects", "bytes"); Max is the highest allowed number.
	What string
	Max  int
}

func (e *LimitError) Error() string {
	if e.Object != nil {
		return fmt.Sprintf("object %q has more than %d %s", e.Object, e.Max, e.What)
	}
	return fmt.Sprintf("the add-on renders to more than %d %s", e.Max, e.What)
}

// DuplicateError says that two of the objects have the same identity.
type DuplicateError struct{ Object ownership.Key }

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("object %q is rendered twice: keep one of the two, or rename one", e.Object)
}

// ObjectError says that a rendered object is not valid.
type ObjectError struct {
	// Object is as complete as known; Index counts rendered objects from 0.
	Object  ownership.Key
	Index   int
	Problem string
}

func (e *ObjectError) Error() string {
	return fmt.Sprintf("object %d, %q: %s", e.Index+1, e.Object, e.Problem)
}

func checkDuplicates(objects []*unstructured.Unstructured) error {
	seen := make(map[ownership.Key]bool, len(objects))
	for _, object := range objects {
		key := ownership.KeyOf(object)
		if seen[key] {
			return &DuplicateError{Object: key}
		}
		seen[key] = true
	}
	return nil
}

func checkSizes(objects []*unstructured.Unstructured) error {
	if len(objects) > ownership.MaxObjects {
		return &LimitError{What: "objects", Max: ownership.MaxObjects}
	}
	total := 0
	for index, object := range objects {
		key := ownership.KeyOf(object)
		text, err := json.Marshal(object.Object)
		if err != nil {
			return &ObjectError{Object: key, Index: index, Problem: "it is not JSON"}
		}
		if len(text) > MaxObjectBytes {
			return &LimitError{Object: &key, What: "bytes", Max: MaxObjectBytes}
		}
		total += len(text)
	}
	if total > MaxTotalBytes {
		return &LimitError{What: "bytes", Max: MaxTotalBytes}
	}
	return nil
}
