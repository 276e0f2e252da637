package survey_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/survey"
	"github.com/trellis-addons/trellis/test/lab"
)

func TestOfReleaseKeepsNoMoreThanItsLimits(t *testing.T) {
	t.Parallel()
	l := lab.New(t)
	l.Namespace()
	var claimed ownership.Inventory
	for i := range 6 {
		object := l.Objects(fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: of-%d, namespace: NAME, annotations: {
			meta.helm.sh/release-name: theirs, meta.helm.sh/release-namespace: NAME}}, data: {k: %s}}`, i, strings.Repeat("x", 10_000)))[0]
		l.CreateObject(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, l.Unique, object)
		claimed = append(claimed, ownership.Entry{Key: ownership.KeyOf(object), Version: "v1"})
	}
	long := claimed[0]
	long.Name = strings.Repeat("n", 254)
	claimed = append(claimed, long)
	marks := ownership.HelmMarks{ReleaseName: "theirs", ReleaseNamespace: l.Unique}

	found, err := survey.OfRelease(t.Context(), l.Target, claimed, marks, survey.FoundLimits{Total: 100_000, Object: 20_000})
	if err != nil || len(found) != 6 {
		t.Fatalf("within the limits: got %d objects and %v, want 6", len(found), err)
	}
	for what, test := range map[string]struct {
		limits survey.FoundLimits
		object bool
	}{
		"all":    {survey.FoundLimits{Total: 30_000, Object: 20_000}, false},
		"object": {survey.FoundLimits{Total: 100_000, Object: 5_000}, true},
	} {
		found, err := survey.OfRelease(t.Context(), l.Target, claimed, marks, test.limits)
		limit, ok := errors.AsType[*survey.FoundError](err)
		if !ok || (limit.Object != nil) != test.object || limit.Have <= limit.Max || len(found) > 0 {
			t.Errorf("%s: got %d objects and %v, want a FoundError", what, len(found), err)
		}
	}
}
