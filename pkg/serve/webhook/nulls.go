package webhook

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/values"
)

const (
	nullsWarned   = 3
	nullPathShown = 120
	// maxNullDepth is deeper than values may be, below spec.addons[n].values.
	maxNullDepth = values.MaxDepth + 8
)

// droppedNulls warns about nulls in values that a user wrote and kubectl apply did not send: kubectl's annotation
// with the written text has them, and the object has no such key.
func droppedNulls(request admission.Request) (warnings []string) {
	written := lastApplied(request.Object.Raw)
	if written == "" || written == lastApplied(request.OldObject.Raw) {
		return nil
	}
	var applied, sent struct{ Spec map[string]any }
	if json.Unmarshal([]byte(written), &applied) != nil || json.Unmarshal(request.Object.Raw, &sent) != nil {
		return nil
	}
	var found nulls
	found.missing(applied.Spec, sent.Spec, values.Path{{Key: "spec"}}, false)
	for _, path := range found.paths {
		warnings = append(warnings, fmt.Sprintf(
			"%s: kubectl apply drops null, so nothing is removed there: use kubectl apply --server-side", text.Cut(text.Line(path), nullPathShown)))
	}
	if more := found.count - len(found.paths); more > 0 {
		warnings = append(warnings, fmt.Sprintf("kubectl apply drops %s", text.Count(more, "more null value")))
	}
	return warnings
}

func lastApplied(object []byte) string {
	var found metav1.PartialObjectMetadata // the rest of a large object is not decoded
	if json.Unmarshal(object, &found) != nil {
		return ""
	}
	return found.Annotations[corev1.LastAppliedConfigAnnotation]
}

// nulls are paths of nulls: the number, and the first few.
type nulls struct {
	count int
	paths []string
}

func (n *nulls) add(at values.Path) {
	if n.count++; len(n.paths) < nullsWarned {
		n.paths = append(n.paths, at.String())
	}
}

// missing finds the paths of nulls below "values" of the first object that the second lacks. All findings share the
// path slice, since either object may be nested deeply.
func (n *nulls) missing(applied, sent any, at values.Path, inValues bool) {
	if len(at) > maxNullDepth {
		return
	}
	switch applied := applied.(type) {
	case map[string]any:
		sent, _ := sent.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(applied)) {
			here := append(at, values.Step{Key: key})
			if _, isThere := sent[key]; applied[key] == nil && !isThere && inValues {
				n.add(here)
				continue
			}
			n.missing(applied[key], sent[key], here, inValues || key == "values")
		}
	case []any:
		sent, _ := sent.([]any)
		for index := range min(len(applied), len(sent)) {
			n.missing(applied[index], sent[index], append(at, values.Step{Index: index, IsIndex: true}), inValues)
		}
	}
}
