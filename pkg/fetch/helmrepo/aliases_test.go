package helmrepo

import (
	"runtime"
	"strings"
	"testing"
)

// TestAliasesOfAnIndexAreCounted: an entry may have 512 KiB, also with its aliases expanded. The test fails when
// entries are decoded by anything but strictyaml.
func TestAliasesOfAnIndexAreCounted(t *testing.T) {
	index := "apiVersion: v1\nentries:\n  web:\n  - name: &a " + strings.Repeat("x", 100<<10) + "\n    version: 1.0.0\n    keywords: [" +
		strings.Repeat("*a,", 5000) + "*a]\n"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readIndex(strings.NewReader(index), "index", func(string) bool { return true })
	runtime.ReadMemStats(&after)
	if err == nil || strings.Contains(err.Error(), "xx") {
		t.Errorf("got %.200v, want a refusal", err)
	}
	if taken := (after.TotalAlloc - before.TotalAlloc) >> 20; taken > 32 {
		t.Errorf("%d MiB were allocated", taken)
	}
}

// TestAnchorsOfAnIndexAreRead: aliases within the limits are expanded.
func TestAnchorsOfAnIndexAreRead(t *testing.T) {
	index := "apiVersion: v1\nentries:\n  web:\n  - name: &a web\n    version: 1.0.0\n    urls: [\"https://x.y/w.tgz?a=1&b=2\"]\n    description: *a\n"
	found, err := readIndex(strings.NewReader(index), "index", func(string) bool { return true })
	if err != nil || len(found["web"]) != 1 {
		t.Errorf("got %v, %v", found, err)
	}
}
