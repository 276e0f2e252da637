package budget

import (
	"runtime"
	"testing"
)

// Two namespaces take all, and a third has no room for a usual object.
func TestAttackTwoNamespacesTakeAll(t *testing.T) {
	into := of(256 << 20)
	var all []any
	count := 0
	for _, namespace := range []string{"evil-1", "evil-2"} {
		for bytes := 1 << 20; bytes >= 256; bytes = bytes * 15 / 16 {
			for at := 0; ; at++ {
				one, whole := fill(t, into, namespace, 1, bytes-at)
				all = append(all, one)
				if whole == 0 {
					break
				}
				count++
			}
		}
	}
	honest, whole := fill(t, into, "honest", 1, 1<<10)
	t.Logf("%d objects of two namespaces take %d of 256 MiB; an object of 1 KiB of a third is whole: %d", count, into.total>>20, whole)
	runtime.KeepAlive(all)
	runtime.KeepAlive(honest)
}
