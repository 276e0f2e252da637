package fieldsets_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/clusters/fieldsets"
	"github.com/trellis-addons/trellis/test/cost"
)

// Red, in the order of the cases, when: the scale subresource is not looked for; it is, whatever it owns; any other owner counts as
// nobody, ours or another's; replicas of the status, or of a longer path, count as those of the spec; no owner at all is not scaled;
// wiped owners are taken for scaling, in either way; and, for both limits, a larger set is read.
func TestReplicasAreScaledByTheirOwnersOrByNobody(t *testing.T) {
	const manager = "addon-installation/x"
	ours := func(fields string) metav1.ManagedFieldsEntry {
		entry := cost.ManagedBy(manager, "", []byte(fields))
		entry.Operation = metav1.ManagedFieldsOperationApply
		return entry
	}
	other := func(subresource, fields string) metav1.ManagedFieldsEntry {
		return cost.ManagedBy("other", subresource, []byte(fields))
	}
	const replicas, image = `{"f:spec":{"f:replicas":{}}}`, `{"f:spec":{"f:image":{}}}`
	large := func(more int) string { return `{"f:spec":{"f:replicas":{},"f:` + strings.Repeat("x", more) + `":{}}}` }
	deep := func(more int) string { return `{"f:a":` + large(more) + `}` }
	for _, test := range []struct {
		why     string
		managed []metav1.ManagedFieldsEntry
		want    fieldsets.Scaling
	}{
		{"an autoscaler's", []metav1.ManagedFieldsEntry{ours(image), other("scale", replicas)}, fieldsets.Scaled},
		{"an autoscaler's, which owns another field", []metav1.ManagedFieldsEntry{ours(replicas), other("scale", image)}, fieldsets.NotScaled},
		{"ours", []metav1.ManagedFieldsEntry{ours(replicas)}, fieldsets.NotScaled},
		{"an editor's, also with 0", []metav1.ManagedFieldsEntry{ours(image), other("", replicas)}, fieldsets.NotScaled},
		{"those of the status", []metav1.ManagedFieldsEntry{ours(image), other("status", `{"f:status":{"f:replicas":{}}}`)}, fieldsets.Unowned},
		{"deeper ones", []metav1.ManagedFieldsEntry{ours(image), other("", deep(1))}, fieldsets.Unowned},
		{"nobody's", []metav1.ManagedFieldsEntry{ours(image)}, fieldsets.Unowned},
		{"nothing is anybody's", nil, fieldsets.NotScaled},
		{"our fields were taken out", []metav1.ManagedFieldsEntry{other("", image)}, fieldsets.NotScaled},
		{"a scaler's with more fields than scalers have", []metav1.ManagedFieldsEntry{ours(image), other("scale", large(5<<10))}, fieldsets.NotScaled},
		{"a set that is too large to be read", []metav1.ManagedFieldsEntry{ours(image), other("", deep(17<<10))}, fieldsets.NotScaled},
	} {
		if got := fieldsets.ScalingOf(test.managed, manager); got != test.want {
			t.Errorf("%s: %s, want %s", test.why, got, test.want)
		}
	}
}

// Red when replicas that nobody owns count as scaled for kinds that may lose them: what somebody took out of a custom resource would
// never come back.
func TestReplicasOfNobodyAreScaledWhereTheyAreNeverAbsent(t *testing.T) {
	deployment, custom := schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "example.com", Kind: "Deployment"}
	for _, test := range []struct {
		scaling    fieldsets.Scaling
		kind       schema.GroupKind
		want, asks bool
	}{
		{fieldsets.Scaled, deployment, true, true},
		{fieldsets.Scaled, custom, true, false},
		{fieldsets.Unowned, deployment, true, true},
		{fieldsets.Unowned, custom, false, false},
		{fieldsets.NotScaled, deployment, false, true},
	} {
		if got := test.scaling.IsOf(test.kind); got != test.want {
			t.Errorf("%s of %s: scaled is %v, want %v", test.scaling, test.kind, got, test.want)
		}
		if got := fieldsets.MayBeUnowned(test.kind); got != test.asks {
			t.Errorf("%s: may be unowned is %v, want %v", test.kind, got, test.asks)
		}
	}
}
