package apply_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

func TestOfReleaseKeepsNoMoreThanItsLimits(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.namespace()
	var claimed ownership.Inventory
	for i := range 6 {
		object := l.objects(fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: of-%d, namespace: NAME, annotations: {
			meta.helm.sh/release-name: theirs, meta.helm.sh/release-namespace: NAME}}, data: {k: %s}}`, i, strings.Repeat("x", 10_000)))[0]
		l.createObject(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, l.name, object)
		claimed = append(claimed, ownership.Entry{Key: ownership.KeyOf(object), Version: "v1"})
	}
	long := claimed[0]
	long.Name = strings.Repeat("n", 254)
	claimed = append(claimed, long)
	marks := ownership.HelmMarks{ReleaseName: "theirs", ReleaseNamespace: l.name}

	found, err := apply.OfRelease(t.Context(), l.target, claimed, marks, apply.FoundLimits{Total: 100_000, Object: 20_000})
	if err != nil || len(found) != 6 {
		t.Fatalf("within the limits: got %d objects and %v, want 6", len(found), err)
	}
	for what, test := range map[string]struct {
		limits apply.FoundLimits
		object bool
	}{
		"all":    {apply.FoundLimits{Total: 30_000, Object: 20_000}, false},
		"object": {apply.FoundLimits{Total: 100_000, Object: 5_000}, true},
	} {
		found, err := apply.OfRelease(t.Context(), l.target, claimed, marks, test.limits)
		limit, ok := errors.AsType[*apply.FoundError](err)
		if !ok || (limit.Object != nil) != test.object || limit.Have <= limit.Max || len(found) > 0 {
			t.Errorf("%s: got %d objects and %v, want a FoundError", what, len(found), err)
		}
	}
}
