package loop

import (
	"bytes"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

func withValues(size int, last byte) *v1.AddonInstallation {
	raw := append(bytes.Repeat([]byte("x"), size), last)
	return &v1.AddonInstallation{Spec: v1.AddonInstallationSpec{Values: &runtime.RawExtension{Raw: raw}}}
}

// Red when large values are compared byte by byte, or when a difference in them is missed.
func TestLargeValuesAreComparedAtOnce(t *testing.T) {
	one, equal, other := withValues(1<<18, 'a'), withValues(1<<18, 'a'), withValues(1<<18, 'b')
	if !equalities.DeepEqual(one, equal) || equalities.DeepEqual(one, other) {
		t.Error("equal values differ, or different ones are equal")
	}
	took := func(compare func(one, other any) bool) int64 {
		return testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				compare(one, equal)
			}
		}).NsPerOp()
	}
	at, once := took(equality.Semantic.DeepEqual), took(equalities.DeepEqual)
	if t.Logf("%d ns, %d ns for each byte by reflection", once, at); once > at/4 {
		t.Errorf("comparing takes %d ns, and %d ns byte by byte", once, at)
	}
	one.Spec.Values.Raw, equal.Spec.Values.Raw = nil, []byte{}
	if !equalities.DeepEqual(one, equal) {
		t.Error("nil and empty bytes differ, unlike in equality.Semantic")
	}
}
