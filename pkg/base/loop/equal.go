package loop

import (
	"bytes"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
)

// equalities compares objects as equality.Semantic does. It compares bytes, such as the values of an installation, at once instead of one
// by one by reflection, which takes 10 ms for 256 KiB.
var equalities = func() (all interface{ DeepEqual(one, other any) bool }) {
	clone := maps.Clone(equality.Semantic.Equalities)
	if err := clone.AddFunc(bytes.Equal); err != nil {
		panic(err)
	}
	return clone
}()
