package apply

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/calls"
)

// scope of a kind, as far as it is known.
type scope int

const (
	scopeUnknown scope = iota
	scopeCluster
	scopeNamespaced
)

// scopes looks a kind's scope up.
type scopes struct {
	mapper   meta.RESTMapper
	declared map[schema.GroupVersionKind]calls.Resource
}

func (s scopes) of(gvk schema.GroupVersionKind) (scope, error) {
	var namespaced bool
	if own, found := s.declared[gvk]; found {
		namespaced = own.Namespaced
	} else {
		mapping, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			return scopeUnknown, nil
		}
		if err != nil {
			return scopeUnknown, err
		}
		namespaced = mapping.Scope.Name() == meta.RESTScopeNameNamespace
	}
	if namespaced {
		return scopeNamespaced, nil
	}
	return scopeCluster, nil
}
