package helmrepo

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/test/long"
)

func named(names ...string) func(string) bool {
	return func(chart string) bool { return slices.Contains(names, chart) }
}

// TestOddIndexesAreReadOrRefused (V05): Null entries and other odd values of an index are errors or left out, never a
// panic.
func TestOddIndexesAreReadOrRefused(t *testing.T) {
	one := []version{{Version: "1.0.0", URL: "x.tgz"}}
	for _, test := range []struct {
		why, index string
		want       map[string][]version // nil: refused
	}{
		{"as Helm writes it", "apiVersion: v1\nentries:\n  x:\n  - name: x\n    urls:\n    - x.tgz\n    version: 1.0.0\ngenerated: now\n",
			map[string][]version{"x": one}},
		{"lists indented deeper", "apiVersion: v1\nentries:\n  x:\n    - version: 1.0.0\n      urls: [x.tgz]\n", map[string][]version{"x": one}},
		{"entries indented deeper", "entries:\n      x:\n      - version: 1.0.0\n        urls: [x.tgz]\napiVersion: v1\n",
			map[string][]version{"x": one}},
		{"comments, empty lines, a quoted name", "# c\n---\napiVersion: v1\n\nentries: # c\n  # c\n  \"x\":\n# c\n\n  - version: 1.0.0\n" +
			"    # c\n    urls: [x.tgz]\n", map[string][]version{"x": one}},
		{"texts with names in them", "apiVersion: v1\nentries:\n  w:\n  - description: |\n      x:\n\n      entries:\n    version: 9.9.9\n" +
			"  x:\n  - description: >\n      w: x\n    version: 1.0.0\n    urls: [x.tgz]\n", map[string][]version{"x": one}},
		{"windows lines", "apiVersion: v1\r\nentries:\r\n  x:\r\n  - version: 1.0.0\r\n    urls: [x.tgz]\r\n", map[string][]version{"x": one}},
		{"null entries are left out", "apiVersion: v1\nentries:\n  x:\n  - null\n  - version: 1.0.0\n    urls: [x.tgz]\n  -\n",
			map[string][]version{"x": one}},
		{"entries without version or URL, too", "apiVersion: v1\nentries:\n  x:\n  - urls: [x.tgz]\n  - version: 2.0.0\n  - version: 3.0.0\n" +
			"    urls: [null]\n  - version: 1.0.0\n    urls: [x.tgz]\n", map[string][]version{"x": one}},
		{"null charts", "apiVersion: v1\nentries:\n  x:\n  y: null\n  z: []\n", map[string][]version{"x": {}, "y": {}, "z": {}}},
		{"numbers for versions", "apiVersion: v1\nentries:\n  x:\n  - version: 1.5\n    urls: [x.tgz]\n",
			map[string][]version{"x": {{Version: "1.5", URL: "x.tgz"}}}},
		{"nothing in it", "apiVersion: v1\nentries: {}\n", map[string][]version{}},
		{"null in it", "apiVersion: v1\nentries: null\n", map[string][]version{}},
		{"JSON", `{"apiVersion":"v1","entries":{"w":[{"version":"2"}],"x":[null,{"version":"1.0.0","urls":["x.tgz"]}]},"generated":""}`,
			map[string][]version{"x": one}},
		{"a chart twice", "apiVersion: v1\nentries:\n  x:\n  - version: 1.0.0\n    urls: [x.tgz]\n" +
			"  x:\n  - version: 1.0.0\n    urls: [y.tgz]\n", nil},
		{"a chart twice in JSON", `{"entries":{"x":[],"x":[]}}`, nil},
		{"entries twice", "apiVersion: v1\nentries:\n  w: []\nentries:\n  x: []\n", nil},
		{"empty", "", nil},
		{"a login page", "<html>\n<body>log in</body>\n</html>\n", nil},
		{"another document", "kind: Pod\n", nil},
		{"no apiVersion", "entries:\n  x: []\n", nil},
		{"flow style", "apiVersion: v1\nentries: {x: [{version: 1.0.0}]}\n", nil},
		{"a list", "apiVersion: v1\nentries:\n- x\n- y\n", map[string][]version{}},
		{"a scalar for a chart", "apiVersion: v1\nentries:\n  x: text\n", nil},
		{"a scalar for an entry", "apiVersion: v1\nentries:\n  x:\n  - text\n", nil},
		{"broken YAML", "apiVersion: v1\nentries:\n  x:\n  - version: [\n", nil},
		{"an alias to elsewhere", "apiVersion: v1\na: &a [{version: 1.0.0}]\nentries:\n  x: *a\n", nil},
		{"wrong indentation", "apiVersion: v1\nentries:\n    x:\n    - version: 1.0.0\n  y: []\n", nil},
		{"cut-off JSON", `{"entries":{"x":[`, nil},
		{"JSON of another kind", `{"entries":[1]}`, nil},
		{"a NUL", "apiVersion: v1\nentries:\n  x:\n  - version: \x00\n", nil},
	} {
		t.Run(test.why, func(t *testing.T) {
			got, err := readIndex(strings.NewReader(test.index), "https://example.com/index.yaml", named("x", "y", "z"))
			if test.want == nil {
				if _, ok := errors.AsType[*fetch.RefusedError](err); !ok {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("got %v, %s", err, diff)
			}
		})
	}
}

// TestIndexesBeyondALimitAreRefused (V08): An index beyond its limits is refused.
func TestIndexesBeyondALimitAreRefused(t *testing.T) {
	for why, index := range map[string]string{
		"a long line":   "apiVersion: v1\nentries:\n  x:\n  - description: " + strings.Repeat("x", 5<<20) + "\n",
		"a large chart": "apiVersion: v1\nentries:\n  x:\n" + strings.Repeat("  - description: "+strings.Repeat("x", 1<<20)+"\n", 17),
		"an alias bomb": "apiVersion: v1\nentries:\n  x:\n  - a: &a [1,1,1,1,1,1,1,1,1]\n    b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n" +
			"    c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n    d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n    e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n" +
			"    f: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n    g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n    h: [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n",
	} {
		if _, err := readIndex(strings.NewReader(index), "x", named("x")); err == nil {
			t.Errorf("%s: let through", why)
		}
	}
}

// TestAsHelmWritesIt: Helm writes an index with this marshaller.
func TestAsHelmWritesIt(t *testing.T) {
	index := map[string]any{"apiVersion": "v1", "generated": "2026-01-01T00:00:00Z", "publicKeys": []string{"x:"}}
	entries, want := map[string]any{}, map[string][]version{}
	for _, chart := range []string{"a", "b-c", "x", "y"} {
		list := []any{}
		for i := range 20 {
			found := version{
				Version: fmt.Sprintf("1.%d.0", i), Digest: "sha256:" + strings.Repeat("a", 64), URL: fmt.Sprintf("%s-%d.tgz", chart, i),
			}
			list = append(list, map[string]any{
				"version": found.Version, "urls": []string{found.URL}, "digest": strings.Repeat("a", 64), "name": chart,
				"description": "x:\n  y:\n\nz:\n- x", "keywords": []string{"x:", "# no comment"}, "annotations": map[string]string{"x": "|\n  x:"},
				"maintainers": []any{map[string]any{"name": "x: y"}}, "home": "", "deprecated": true,
			})
			if chart != "y" {
				want[chart] = append(want[chart], found)
			}
		}
		entries[chart] = list
	}
	index["entries"] = entries
	written, err := yaml.Marshal(index)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(written), mustJSON(t, index)} {
		got, err := readIndex(strings.NewReader(text), "x", named("a", "b-c", "x"))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v, %s", err, diff)
		}
	}
}

func mustJSON(t *testing.T, value any) string {
	t.Helper()
	written, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(written)
}

func TestLargeIndexTakesLittleMemory(t *testing.T) {
	long.Heavy(t)
	var index strings.Builder
	index.WriteString("apiVersion: v1\nentries:\n")
	for chart := range 200 {
		fmt.Fprintf(&index, "  chart-%d:\n", chart)
		for i := range 200 {
			fmt.Fprintf(&index, "  - version: 1.%d.0\n    description: %s\n    urls:\n    - x.tgz\n", i, strings.Repeat("text ", 200))
		}
	}
	text := index.String()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := readIndex(strings.NewReader(text), "x", named("chart-7"))
	runtime.ReadMemStats(&after)
	if err != nil || len(got["chart-7"]) != 200 {
		t.Fatalf("got %d versions, %v", len(got["chart-7"]), err)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; len(text) < 40<<20 || allocated > 16<<20 {
		t.Errorf("an index of %d MiB allocated %d MiB", len(text)>>20, allocated>>20)
	}
}

// TestHostileIndexTakesLittleMemory (V08): A hostile index uses little memory. Decoded values take many times their
// size in memory: each index here has the maximum size or the maximum number of values, with as few bytes as YAML or
// JSON allow.
func TestHostileIndexTakesLittleMemory(t *testing.T) {
	long.Heavy(t)
	const head = "apiVersion: v1\nentries:\n  x:\n"
	fill := func(text string, size int) string { return strings.Repeat(text, size/len(text)) }
	field := "  - version: 1.0.0\n    urls: [x.tgz]\n    keywords:\n"
	under, over := entryLimit-1024, entryLimit+1024
	most := yamlPieces - 100
	for _, test := range []struct {
		why, index string
		refused    bool
	}{
		{"entries of empty lists", head + fill(field+strings.Repeat("    - []\n", most/3), 2<<20), false},
		{"entries of small maps", head + fill(field+strings.Repeat("    - a: b\n", most/2), 2<<20), false},
		{"entries in flow style", head + fill(field+"    - ["+strings.Repeat("1,", most)+"]\n", 2<<20), false},
		{"an entry of empty lists", head + field + fill("    - []\n", under), true},
		{"an entry of small maps", head + field + fill("    - a: b\n", under), true},
		{"an entry in flow style", head + field + "    - [" + fill("1,1,1,1,1,1,1,1,\n     ", under) + "]\n", true},
		{"an entry too large", head + field + fill("    - []\n", over), true},
		{"all of it empty entries", head + fill("  -\n", chartLimit-1024), true},
		{"all of it small entries", head + fill("  - version: 1.0.0\n    urls: [x.tgz]\n", chartLimit-1024), true},
		{"all of it long addresses", head + fill("  - version: 1.0.0\n    urls: ["+fill("x", under)+"]\n", chartLimit-(1<<20)), true},
		{"a whole chart in one line", "apiVersion: v1\nentries:\n  x: [" + fill("{version: 1},", lineLimit-1024) + "]\n", true},
		{"a name that is a list", "apiVersion: v1\nentries:\n  [" + fill("1,", lineLimit-1024) + "1]: []\n", true},
		{"JSON, a long text", `{"apiVersion":"` + fill("x", 16<<20) + `","entries":{}}`, true},
		{"JSON, deep", `{"apiVersion":` + fill("[", 16<<20), true},
		{"JSON, all of it small entries", `{"entries":{"x":[` + fill(`{"version":"1.0.0","urls":["x"]},`, 16<<20) + `{}]}}`, true},
		{"JSON, an entry too large", `{"entries":{"x":[{"urls":[` + fill(`"x",`, 16<<20) + `""]}]}}`, true},
		{"JSON, nothing that is wanted", `{"entries":{"w":[` + fill(`{"urls":["x"]},`, 16<<20) + `{}],"x":[]}}`, false},
	} {
		t.Run(test.why, func(t *testing.T) {
			var err error
			fetchtest.BoundedMemory(t, 64<<20, func() {
				_, err = readIndex(strings.NewReader(test.index), "x", named("x"))
			})
			if _, refused := errors.AsType[*fetch.RefusedError](err); refused != test.refused || err != nil && !refused {
				t.Errorf("got %v", err)
			}
		})
	}
}

func FuzzIndex(f *testing.F) {
	f.Add("apiVersion: v1\nentries:\n  x:\n  - version: 1.0.0\n    urls: [x.tgz]\n")
	f.Add(`{"entries":{"x":[{"version":"1.0.0","urls":["x.tgz"]}]}}`)
	f.Add("entries:\n  x: &a\n  - *a\n")
	f.Add("entries:\n  ? x\n  : y\n")
	f.Fuzz(func(t *testing.T, index string) {
		versions, err := readIndex(strings.NewReader(index), "x", named("x"))
		if err != nil {
			return
		}
		for _, entry := range versions["x"] {
			if entry.Version == "" || entry.URL == "" {
				t.Errorf("got %v", entry)
			}
		}
		_, _ = pick(versions["x"], nil, Location{Chart: "x", Version: "1.0.0"}, "x")
	})
}
