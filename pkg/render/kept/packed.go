package kept

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/trellis-addons/trellis/pkg/render"
)

// packed is a result as JSON: a tenth of its size as maps, and no caller can change it.
type packed struct {
	objects [][]byte
	chart   []byte
	digests digests
}

func packResult(result render.Result) (packed, error) {
	made := packed{objects: make([][]byte, len(result.Objects)), digests: digests{}}
	for i, object := range result.Objects {
		encoded, err := encode(object.Object)
		if err != nil {
			return packed{}, err
		}
		made.objects[i] = encoded
		made.digests[nameOf(object, "")] = sha256.Sum256(encoded)
	}
	if result.Chart == nil {
		return made, nil
	}
	for _, hook := range result.Chart.Hooks {
		encoded, err := encode(hook.Object.Object)
		if err != nil {
			return packed{}, err
		}
		made.digests[nameOf(hook.Object, hook.Path)] = sha256.Sum256(encoded)
	}
	encoded, err := encode(result.Chart)
	made.chart = encoded
	return made, err
}

func nameOf(object *unstructured.Unstructured, hookPath string) render.ObjectName {
	return render.ObjectName{
		GVK: object.GroupVersionKind(), Namespace: object.GetNamespace(), Name: object.GetName(), HookPath: hookPath,
	}
}

func (p packed) size() int {
	size := len(p.chart)
	for _, object := range p.objects {
		size += len(object)
	}
	return size
}

// result unpacks objects and chart. The caller may change them.
func (p packed) result() (render.Result, error) {
	result := render.Result{Objects: make([]*unstructured.Unstructured, len(p.objects))}
	for i, encoded := range p.objects {
		object := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(encoded, &object.Object); err != nil {
			return render.Result{}, fmt.Errorf("decoding a cached object: %w", err)
		}
		result.Objects[i] = object
	}
	if p.chart == nil {
		return result, nil
	}
	result.Chart = &render.Chart{}
	if err := utiljson.Unmarshal(p.chart, result.Chart); err != nil {
		return render.Result{}, fmt.Errorf("decoding a cached chart: %w", err)
	}
	return result, nil
}

func (p packed) values() (map[string]any, error) {
	values := map[string]any{}
	if err := utiljson.Unmarshal(p.objects[0], &values); err != nil {
		return nil, fmt.Errorf("decoding cached values: %w", err)
	}
	return values, nil
}

// differ names the objects that differ between two renderings, sorted; none for a first rendering.
func (d digests) differ(other digests) []render.ObjectName {
	if d == nil {
		return nil
	}
	different := map[render.ObjectName]bool{}
	for name, digest := range d {
		if found, ok := other[name]; !ok || found != digest {
			different[name] = true
		}
	}
	for name := range other {
		if _, ok := d[name]; !ok {
			different[name] = true
		}
	}
	return slices.SortedFunc(maps.Keys(different), func(a, b render.ObjectName) int {
		return cmp.Or(cmp.Compare(a.String(), b.String()), cmp.Compare(a.GVK.String(), b.GVK.String()))
	})
}
