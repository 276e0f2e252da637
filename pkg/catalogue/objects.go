package catalogue

import (
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// clusterMark is the placeholder for the Cluster's name in names of objects that a version reads values from.
const clusterMark = "$(cluster)"

// ObjectFor is a version's reference to an object, for a Cluster of a name.
func ObjectFor(ref *v1.ObjectReference, cluster string) *v1.ObjectReference {
	if ref == nil || !strings.Contains(ref.Name, clusterMark) {
		return ref
	}
	named := ref.DeepCopy()
	named.Name = strings.ReplaceAll(ref.Name, clusterMark, cluster)
	return named
}

// Names reports whether a version reads values from an object of this kind and name, for any Cluster.
func (e *Entry) Names(group, kind, name string) bool {
	for i := range e.Addon.Versions {
		for _, source := range e.Addon.Versions[i].ValuesFrom {
			ref := source.ObjectRef
			if ref == nil || ref.APIGroup != group || ref.Kind != kind {
				continue
			}
			before, after, isMarked := strings.Cut(ref.Name, clusterMark)
			if ref.Name == name || isMarked && strings.HasPrefix(name, before) && strings.HasSuffix(name, after) {
				return true
			}
		}
	}
	return false
}
