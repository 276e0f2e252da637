package catalogue_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/json"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

func TestAttackSetsHaveNoBudget(t *testing.T) {
	var text strings.Builder
	text.WriteString(`{"metadata":{"labels":{`)
	for at := range 60_000 {
		if at > 0 {
			text.WriteString(",")
		}
		fmt.Fprintf(&text, `"%x":""`, at)
	}
	text.WriteString(`}}}`)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var all [20]*v1.AddonSet
	for at := range all {
		all[at] = &v1.AddonSet{}
		if err := json.Unmarshal([]byte(text.String()), all[at]); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("an AddonSet of %d KiB of labels takes %d KiB; 100 take %d MiB", text.Len()>>10, (after.HeapAlloc-before.HeapAlloc)/20>>10, (after.HeapAlloc-before.HeapAlloc)*5>>20)
	runtime.KeepAlive(all)
}
