package render

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Images rewrites the images of objects in place. Canonical is equal for equal rules.
type Images interface {
	Rewrite(objects []*unstructured.Unstructured)
	Canonical() []byte
	// With are these rules with more mirrors, by registry. They override mirrors of equal registries.
	With(mirrors map[string]string) (Images, error)
}
