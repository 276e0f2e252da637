package crds

import (
	"errors"
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

// kind of CustomResourceDefinitions.
var kind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// limits of a file: ours are below 100 KiB, some 30 deep.
var limits = strictyaml.Limits{Bytes: 1 << 20, Depth: 100}

var errNone = errors.New("the folder has no CRDs")

// Read returns the CRDs of all *.yaml files of a folder, one each, in the order of their names.
func Read(folder fs.FS) ([]*unstructured.Unstructured, error) {
	names, err := fs.Glob(folder, "*.yaml")
	if err != nil || len(names) == 0 {
		return nil, errors.Join(errNone, err)
	}
	var read []*unstructured.Unstructured
	for _, name := range names {
		content, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, fmt.Errorf("reading %q: %w", name, err)
		}
		decoded, err := strictyaml.Decode(content, limits)
		if err != nil {
			return nil, fmt.Errorf("reading %q: %w", name, err)
		}
		object, _ := decoded.(map[string]any)
		crd := &unstructured.Unstructured{Object: object}
		if crd.GroupVersionKind() != kind {
			return nil, fmt.Errorf("reading %q: it is not a CustomResourceDefinition", name)
		}
		read = append(read, crd)
	}
	return read, nil
}
