package helmrepo_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/helmrepo"
)

// TestChartsThatOneOwnerAsksForRefuseNoOtherOnes (V08): An index has limits for all charts that are requested. An
// owner that requests more of a shared repository than these, or a chart that can't be read, causes no refusal for
// another owner. The test fails when owners share an index.
func TestChartsThatOneOwnerAsksForRefuseNoOtherOnes(t *testing.T) {
	server := fetchtest.ServeCharts(t)
	for chart, broken := range map[string]string{
		"large": strings.Repeat("  - description: "+strings.Repeat("x", 1<<20)+"\n", 17), "many": strings.Repeat("  -\n", 60_000),
		"broken": "  - version: [\n", "twice": "  - version: 1.0.0\n    urls: [x.tgz]\n  twice: []\n",
	} {
		index := fmt.Sprintf("apiVersion: v1\nentries:\n  %s:\n%s  redis:\n  - version: 1.0.0\n    urls: [x.tgz]\n", chart, broken)
		server.Put("/index.yaml", []byte(index))
		source := client(t)
		of := func(owner, chart string) fetch.Reference {
			made := reference(server, chart, "1.0.0")
			made.Owner = owner
			return made
		}
		if _, err := source.Resolve(t.Context(), of("one", "redis")); err != nil {
			t.Fatal(err)
		}
		if _, err := source.Resolve(t.Context(), of("another", chart)); !isRefused(err) {
			t.Errorf("chart %s: got %v", chart, err)
		}
		server.Put("/index.yaml", []byte(index+"generated: later\n"))
		if _, err := source.Resolve(t.Context(), of("one", "redis")); err != nil {
			t.Errorf("beside chart %s: %v", chart, err)
		}
	}
}

// TestManyIndexesTakeLittleMemory (V08): The cached parts of many indexes of the maximum size use little memory: a
// catalogue may name any number of them. The test fails when all versions of a chart are cached.
func TestManyIndexesTakeLittleMemory(t *testing.T) {
	for why, entries := range map[string]string{
		"long addresses": strings.Repeat("  - version: 2.0.0\n    urls: ["+strings.Repeat("x", 500<<10)+"]\n", 15),
		"many versions":  strings.Repeat("  - version: 2.0.0\n    urls: ["+strings.Repeat("x", 100)+"]\n", 40_000),
	} {
		content := []byte("apiVersion: v1\nentries:\n  redis:\n  - version: 1.0.0\n    urls: [x.tgz]\n" + entries)
		server := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }))
		source := client(t)
		before := live()
		const indexes = 8
		for number := range indexes {
			if _, err := source.Resolve(t.Context(), fetch.Reference{
				Location:    helmrepo.Location{URL: fmt.Sprintf("%s/%d", server.URL, number), Chart: "redis", Version: "1.0.0"},
				Credentials: fetch.Credentials{CA: server.CA},
			}); err != nil {
				t.Fatal(err)
			}
		}
		if taken := live() - before; taken > 8<<20 {
			t.Errorf("%s: %d indexes of %d MiB take %d MiB", why, indexes, len(content)>>20, taken>>20)
		}
		runtime.KeepAlive(source)
	}
}

// live is the number of bytes in use.
func live() int64 {
	var found runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&found)
	return int64(found.HeapAlloc)
}
