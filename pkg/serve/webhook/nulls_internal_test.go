package webhook

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Red when what a user put into the annotation of kubectl takes memory beyond its size: by depth, or by a long path for each null.
func TestNullsOfHostileAnnotationsTakeLittleMemory(t *testing.T) {
	wide := `{"spec":{"values":{"` + strings.Repeat("k", 100_000) + `":{`
	for i := range 12_000 {
		wide += fmt.Sprintf(`"a%d":null,`, i)
	}
	for name, written := range map[string]string{
		"deep": `{"spec":{"values":` + strings.Repeat(`{"a":`, 9000) + `null` + strings.Repeat("}", 9000) + `}}`,
		"wide": strings.TrimSuffix(wide, ",") + "}}}}",
	} {
		var request admission.Request

		request.Object.Raw = fmt.Appendf(nil, `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":%q}},"spec":{}}`, written)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		warnings := droppedNulls(request)
		runtime.ReadMemStats(&after)
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 64 {
			t.Errorf("%s: %d MiB for %d KiB, and %d warnings", name, used, len(written)>>10, len(warnings))
		}
	}
}
