package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/test/binaries"
)

// TestFilesAreThoseOfTheTable: red when a panel was changed and `make generate` was not run.
func TestFilesAreThoseOfTheTable(t *testing.T) {
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	made, err := files()
	if err != nil {
		t.Fatal(err)
	}
	if len(made) != 3 {
		t.Errorf("%d files are made", len(made))
	}
	for name, want := range made {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is not what hack/dashboards says: run make generate (-want +got):\n%s", name, diff)
		}
	}
}

// TestPanelsDoNotOverlap: red when two panels cover each other, when two have one title, or when a panel is not explained.
func TestPanelsDoNotOverlap(t *testing.T) {
	for _, one := range []dashboard{master(), seed()} {
		taken, titles := map[[2]int]string{}, map[string]bool{}
		for _, found := range one.model()["panels"].([]object) {
			place, title := found["gridPos"].(object), found["title"].(string)
			for x := range place["w"].(int) {
				for y := range place["h"].(int) {
					spot := [2]int{place["x"].(int) + x, place["y"].(int) + y}
					if other, isTaken := taken[spot]; isTaken || spot[0] >= 24 {
						t.Fatalf("%s: panel %q covers %q, or the margin", one.title, title, other)
					}
					taken[spot] = title
				}
			}
			if found["type"] == "row" {
				continue
			}
			if titles[title] || !strings.HasSuffix(found["description"].(string), ".") {
				t.Errorf("%s: panel %q is there twice, or not explained", one.title, title)
			}
			titles[title] = true
		}
	}
}

// Red when a query is not kept to the namespaces that were chosen.
func TestEachSelectorIsOfTheNamespace(t *testing.T) {
	for ask, want := range map[string]string{
		"sum(a{})":                 `sum(a{namespace=~"$namespace"})`,
		`rate(a{b="c"}[5m]) / d{}`: `rate(a{namespace=~"$namespace",b="c"}[5m]) / d{namespace=~"$namespace"}`,
	} {
		if got := (query{ask: ask}).expression(); got != want {
			t.Errorf("%s is asked as %s", ask, got)
		}
	}
	for _, one := range []dashboard{master(), seed()} {
		for _, row := range one.rows {
			for _, picture := range row.panels {
				for _, asked := range picture.queries {
					names := strings.Count(asked.ask, "trellis_") + strings.Count(asked.ask, "workqueue_") + strings.Count(asked.ask, "process_")
					if braces := strings.Count(asked.ask, "{"); braces < max(names, 1) {
						t.Errorf("%s: %s has %d selectors and %d metrics", picture.title, asked.ask, braces, names)
					}
				}
			}
		}
	}
}
