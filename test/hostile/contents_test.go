package hostile_test

import (
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/serve/documents"
	"github.com/trellis-addons/trellis/test/hostile"
)

// TestContentsAreRefusedAtABoundedCost: Every content of the kit is refused, and uses a limited part of memory until
// then: MiB of all allocations.
func TestContentsAreRefusedAtABoundedCost(t *testing.T) {
	refused := func(t *testing.T, most uint64, read func() error) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := read()
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Error("it is taken")
		}
		if taken := (after.TotalAlloc - before.TotalAlloc) >> 20; taken > most {
			t.Errorf("%d MiB were allocated", taken)
		}
	}
	for why, content := range hostile.Kubeconfigs() {
		t.Run("kubeconfig/"+why, func(t *testing.T) {
			refused(t, 64, func() error {
				_, err := cluster.ParseKubeconfig(content)
				return err
			})
		})
	}
	for why, tree := range hostile.Repositories() {
		t.Run("repository/"+why, func(t *testing.T) {
			files := fstest.MapFS{}
			for name, text := range tree {
				files[name] = &fstest.MapFile{Data: []byte(text)}
			}
			refused(t, 512, func() error {
				_, err := documents.Read(t.Context(), files)
				return err
			})
		})
	}
}
