package revision

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// EncodeObjects returns objects in the form of a record.
func EncodeObjects(objects []*unstructured.Unstructured) ([]json.RawMessage, error) {
	encoded := make([]json.RawMessage, len(objects))
	for i, object := range objects {
		raw, err := json.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %q: %w", object.GetKind(), object.GetName(), err)
		}
		encoded[i] = raw
	}
	return encoded, nil
}

// DecodeObjects is the reverse of EncodeObjects.
func DecodeObjects(encoded []json.RawMessage) ([]*unstructured.Unstructured, error) {
	objects := make([]*unstructured.Unstructured, len(encoded))
	for i, raw := range encoded {
		objects[i] = &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(raw, &objects[i].Object); err != nil {
			return nil, fmt.Errorf("decoding object %d of the record: %w", i, err)
		}
	}
	return objects, nil
}
