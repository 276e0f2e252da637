package clusterapi

import (
	"testing"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
)

// Red where another's hold, or none because there is no pool, is taken for Trellis's, and where a kind without pools is in the way.
func TestHoldsAreThoseOfTrellis(t *testing.T) {
	pool := func(value string) any {
		return map[string]any{"metadata": map[string]any{"annotations": map[string]any{capiv1.AnnotationHoldSequence: value}}}
	}
	ours, others, free := pool("trellis"), pool("other"), any(map[string]any{})
	for _, test := range []struct {
		why        string
		hook       string
		sets, more []any
		want       Holds
	}{
		{"both", capiv1.AnnotationBeforeUpgrade, []any{ours, free}, []any{ours}, Holds{Hook: true, Workers: true}},
		{"one kind only", BeforeUpgrade + "/other", []any{ours}, nil, Holds{Workers: true}},
		{"a kind is free", "x", []any{ours}, []any{free, ours}, Holds{}},
		{"another's", "x", []any{others}, nil, Holds{}},
		{"no pool", "x", nil, nil, Holds{}},
	} {
		cluster := object(ClusterKind, "team", "elm")
		cluster.SetAnnotations(map[string]string{test.hook: ""})
		workers := map[string]any{"machineDeployments": test.sets, "machinePools": test.more}
		cluster.Object["spec"] = map[string]any{"topology": map[string]any{"workers": workers}}
		if got := HoldsOf(cluster); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.why, got, test.want)
		}
	}
}
