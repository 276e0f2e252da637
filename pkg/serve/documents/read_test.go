package documents_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/serve/documents"
	"github.com/trellis-addons/trellis/test/long"
)

func folder(files map[string]string) fstest.MapFS {
	made := fstest.MapFS{}
	for name, content := range files {
		made[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return made
}

const prometheus = `- name: prometheus
  description: Metrics.
  versions:
  - version: "1.0.0"
  - version: "1.1.0"
`

func TestReadUnitesManyFiles(t *testing.T) {
	read, err := documents.Read(t.Context(), folder(map[string]string{
		"b/prometheus.yaml": prometheus,
		"a.yaml": `# a comment
---
apiVersion: kubermatic.k8c.io/v1
kind: AddonCatalogue
metadata: {name: whatever, labels: {a: b}}
spec:
  type: Core
  priority: 7
  addons:
  - name: loki
    versions: [{version: v3.0.0, constraints: {k8sVersion: ">= 1.30"}, values: {replicas: 3}}]
  - name: prometheus
    description: Newer metrics.
    versions: [{version: v2.0.0}]
---
- name: empty-of-everything
  versions: [{version: "1"}]
---
`,
		"README.md": "- name: not yaml", "c.yml": "- name: other ending", "empty.yaml": "", "comment.yaml": "# nothing\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, addon := range read.Addons {
		for _, version := range addon.Versions {
			have = append(have, fmt.Sprintf("%s %s (%s) %s", addon.Name, version.Version, addon.Description,
				read.Place(string(addon.Name), version.Version)))
		}
	}
	want := []string{
		"empty-of-everything 1 () a.yaml line 17",
		"loki v3.0.0 () a.yaml line 11",
		"prometheus v2.0.0 (Newer metrics.) a.yaml line 14",
		"prometheus 1.0.0 (Newer metrics.) b/prometheus.yaml line 4",
		"prometheus 1.1.0 (Newer metrics.) b/prometheus.yaml line 5",
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Error(diff)
	}
	if read.Files != 4 {
		t.Errorf("%d files", read.Files)
	}
}

func TestReadSaysWhereAndWhat(t *testing.T) {
	const secret = "hunter2"
	for _, test := range []struct{ why, content, want string }{
		{"no YAML", "- name: a\n  versions: [\n", "x.yaml line 2: is not valid YAML"},
		{"a key twice", "- name: a\n  name: b\n", `x.yaml line 2: has key "name" twice`},
		{"an unknown field", "\n- name: a\n  version: []\n", `x.yaml line 3: unknown field "version" in addons[]`},
		{"an unknown field deep down", "- name: a\n  versions:\n  - version: a\n    template:\n      method: helm\n      helm: {hooks: no}\n",
			`x.yaml line 6: unknown field "hooks" in addons[].versions[].template.helm`},
		{"a number for a version", "- name: a\n  versions:\n  - version: 1.0\n", "x.yaml line 3: addons[].versions[].version must be a string"},
		{"a map as a list", "- name: a\n  versions: {version: x}\n", "x.yaml line 2: addons[].versions must be a list"},
		{"a text for a map", "- " + secret + "\n", "x.yaml line 1: addons[] must be a map"},
		{"a wrong duration", "- name: a\n  versions: [{version: a, template: {timeout: " + secret + "}}]\n", "x.yaml line 1: the add-on can't be read"},
		{"another kind", "---\napiVersion: v1\nkind: Secret\ndata: {a: " + secret + "}\n", "x.yaml line 2: is neither a list of add-ons nor an AddonCatalogue"},
		{"another group", "apiVersion: example.com/v1\nkind: AddonCatalogue\n", "x.yaml line 1: is neither"},
		{"a text", "---\n---\n" + secret + "\n", "x.yaml line 3: is neither a list of add-ons nor an AddonCatalogue"},
		{"a field beside spec", "apiVersion: kubermatic.k8c.io/v1\nkind: AddonCatalogue\naddons: []\n", `x.yaml line 3: unknown field "addons"`},
		{"a field in spec", "apiVersion: kubermatic.k8c.io/v1\nkind: AddonCatalogue\nspec:\n  adons: []\n", `x.yaml line 4: unknown field "adons" in spec`},
		{"a version twice", "- name: a\n  versions:\n  - version: v1.0.0\n  - version: \"1.0\"\n",
			`x.yaml line 4: add-on "a" has version "1.0" in x.yaml line 3 already`},
		{"a version twice in two documents", "- name: a\n  versions:\n  - version: v1.0.0\n---\n- {name: a, versions: [{version: 1.0.0+x}]}\n",
			`x.yaml line 5: add-on "a" has version "1.0.0+x" in x.yaml line 3 already`},
		{"a bomb", "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n" +
			"d: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\n" +
			"g: &g [*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g]\n", "x.yaml line "},
		{"too large", "#" + strings.Repeat("x", 1<<20), "x.yaml: the file has 1048577 bytes, more than 1048576: split it"},
		{"too many documents", strings.Repeat("---\n", 1025), "x.yaml: there are more than 1024 documents"},
	} {
		t.Run(test.why, func(t *testing.T) {
			_, err := documents.Read(t.Context(), folder(map[string]string{"x.yaml": test.content}))
			invalid, ok := errors.AsType[*documents.InvalidError](err)
			if !ok || !strings.Contains(invalid.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("it quotes a value: %v", err)
			}
		})
	}
}

func TestReadTakesWhatYAMLOffers(t *testing.T) {
	for why, content := range map[string]string{
		"aliases":     "- &a {name: a, versions: [&v {version: x}]}\n- {name: b, versions: [*v]}\n",
		"merged keys": "- {name: a, versions: [&v {version: x, deprecated: no more}]}\n- {name: b, versions: [{<<: *v, values: {}}]}\n",
		"merged keys that are overridden": "- {name: a, versions: [&v {version: x, deprecated: no more}]}\n" +
			"- {name: b, versions: [{<<: *v, version: w, deprecated: never}]}\n",
		"a list that overrides a merged one": "apiVersion: kubermatic.k8c.io/v1\nkind: AddonCatalogue\nmetadata: {annotations: {}}\nspec: {<<: {addons: [{name: c, " +
			"versions: [{version: x}]}]}, addons: [{name: a, versions: [{version: x}]}, {name: b, versions: [{version: x}]}]}\n",
		"a closed document": "- {name: a, versions: [{version: x}]}\n- {name: b, versions: [{version: x}]}\n---\n",
		"JSON":              `[{"name": "a", "versions": [{"version": "x"}]}, {"name": "b", "versions": [{"version": "x"}]}]`,
		"dashes in texts":   "- name: a\n  description: |\n    ---\n    text\n  versions: [{version: x}]\n- {name: b, versions: [{version: x}]}\n",
		"Windows lines":     "---\r\n- name: a\r\n  versions: [{version: x}]\r\n---\r\n- name: b\r\n  versions: [{version: x}]\r\n",
	} {
		t.Run(why, func(t *testing.T) {
			read, err := documents.Read(t.Context(), folder(map[string]string{"x.yaml": content}))
			if err != nil {
				t.Fatal(err)
			}
			if len(read.Addons) != 2 || len(read.Addons[0].Versions) != 1 || len(read.Addons[1].Versions) != 1 {
				t.Errorf("got %+v", read.Addons)
			}
		})
	}
}

func TestReadEndsWhereItIsTooMuch(t *testing.T) {
	files := map[string]string{}
	for i := range 20 {
		files[fmt.Sprintf("%02d.yaml", i)] = "#" + strings.Repeat("x", 1<<20-10)
	}
	if _, err := documents.Read(t.Context(), folder(files)); err == nil || !strings.Contains(err.Error(), "16.yaml: the files have more than") {
		t.Errorf("size: %v", err)
	}
	many := ""
	for i := range 513 {
		many += fmt.Sprintf("- {name: a%d, versions: [{version: x}]}\n", i)
	}
	if _, err := documents.Read(t.Context(), folder(map[string]string{"x.yaml": many})); err == nil || err.Error() != "x.yaml line 513: there are more than 512 add-ons" {
		t.Errorf("add-ons: %v", err)
	}
}

// TestWhatAFolderTakesIsBounded: small files are large with their aliases written out, or take much
// memory for each of their bytes. Red when documents are held to limits one by one only.
func TestWhatAFolderTakesIsBounded(t *testing.T) {
	aliases := map[string]string{}
	for file := range 15 {
		var text strings.Builder
		for document := range 16 {
			fmt.Fprintf(&text, "---\n- name: a%d-%d\n  versions:\n  - {version: 0.0.0, values: &v {a: %q}}\n", file, document, strings.Repeat("x", 29_000))
			for version := range 127 {
				fmt.Fprintf(&text, "  - {version: %d.0.0, values: *v}\n", version+1)
			}
		}
		aliases[fmt.Sprintf("%02d.yaml", file)] = text.String()
	}
	spread := map[string]string{}
	for file := range 20 {
		spread[fmt.Sprintf("%02d.yaml", file)] = fmt.Sprintf("- name: b%d\n  versions: [{version: 0.0.0, values: {b: &v %q, c: [%s*v]}}]\n",
			file, strings.Repeat("x", 10_000), strings.Repeat("*v,", 90))
	}
	var names strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&names, "- {name: a%d}\n", i)
	}
	for _, test := range []struct {
		why   string
		files map[string]string
		want  string
	}{
		{"aliases in one add-on", aliases, "bytes with its aliases expanded: no API server can store that"},
		{"aliases in many files", spread, "together with the documents before it, more than 16777216 bytes"},
		{"versions of one add-on", map[string]string{"x.yaml": "- name: a\n  versions: [" + strings.Repeat("{},", 40_000) + "{}]\n"}, "has 40001 versions, more than 128"},
		{"names", map[string]string{"x.yaml": names.String()}, "there are more than 512 add-ons"},
		{"lists", map[string]string{"x.yaml": "- name: a\n  versions: [" + strings.Repeat("[],", 300_000) + "[]]\n"}, "more than 100000 maps, lists and values"},
	} {
		t.Run(test.why, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := documents.Read(t.Context(), folder(test.files))
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %.200v, want %q", err, test.want)
			}
			if taken := (after.TotalAlloc - before.TotalAlloc) >> 20; taken > 512 {
				t.Errorf("%d MiB were allocated", taken)
			}
		})
	}
}

// Folders that are read at once take the memory of one: the master's manager reads four. Red when documents are decoded at the same time.
func TestDocumentsAreDecodedOneByOne(t *testing.T) {
	long.Heavy(t)
	content := "- name: a\n  versions: [{version: x, values: {a: [" + strings.Repeat("a: 1,", 99_000) + "1]}}]\n"
	fetchtest.BoundedMemory(t, 224<<20, func() {
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				if read, err := documents.Read(t.Context(), folder(map[string]string{"x.yaml": content})); err != nil || len(read.Addons) != 1 {
					t.Errorf("got %v", err)
				}
			})
		}
		readers.Wait()
	})
}

// stuck is a folder whose files are never read to their end.
type stuck struct {
	fstest.MapFS
	reading chan struct{}
}

func (s stuck) ReadFile(string) ([]byte, error) {
	s.reading <- struct{}{}
	<-s.reading
	return nil, nil
}

// TestNobodyWaitsToDecodeBeyondItsTime turns red when a pass waits for another folder after its context ended.
func TestNobodyWaitsToDecodeBeyondItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := folder(map[string]string{"x.yaml": "[]"})
		first := stuck{files, make(chan struct{})}
		go func() { _, _ = documents.Read(t.Context(), first) }()
		<-first.reading
		ctx, cancel := context.WithCancel(t.Context())
		given := make(chan error, 1)
		go func() {
			_, err := documents.Read(ctx, files)
			given <- err
		}()
		synctest.Wait()
		if len(given) > 0 {
			t.Errorf("two files are decoded at a time, or: %v", <-given)
		}
		cancel()
		if err := <-given; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
		first.reading <- struct{}{}
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(prometheus))
	f.Add([]byte("apiVersion: kubermatic.k8c.io/v1\nkind: AddonCatalogue\nspec: {addons: [{name: a, versions: [{version: v1}]}]}\n---\n[]"))
	f.Add([]byte("- &a {name: a, versions: [&v {version: x, <<: {deprecated: y}}]}\n- {name: b, versions: [*v]}\n"))
	f.Add([]byte("- name: a\n  versions: [{version: x, template: {method: helm, timeout: 3m}, values: {a: [1, 2.5, null, on]}}]\n"))
	f.Add([]byte("a: &a [*a]\n---\n- !!binary aGk=\n--- {<<: [*b]}\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		read, err := documents.Read(t.Context(), fstest.MapFS{"x.yaml": &fstest.MapFile{Data: content}})
		if err != nil {
			if invalid, ok := errors.AsType[*documents.InvalidError](err); !ok || len(invalid.Problems) == 0 {
				t.Fatalf("an error without a problem: %v", err)
			}
			return
		}
		for _, addon := range read.Addons {
			seen := map[string]bool{}
			for _, version := range addon.Versions {
				place := read.Place(string(addon.Name), version.Version)
				if place.Line < 1 || seen[version.Version] {
					t.Errorf("%s %s at %v", addon.Name, version.Version, place)
				}
				seen[version.Version] = true
			}
		}
	})
}

// Red when the namespace that a document names is lost where another says more of the add-on, or when two that differ are united.
func TestReadUnitesNamespaces(t *testing.T) {
	first := "- {name: a, targetNamespace: kube-system, createNamespace: true, versions: [{version: \"1\"}]}\n"
	read, err := documents.Read(t.Context(), folder(map[string]string{"a.yaml": first, "b.yaml": "- {name: a, versions: [{version: \"2\"}]}\n"}))
	if err != nil {
		t.Fatal(err)
	}
	if addon := read.Addons[0]; addon.TargetNamespace != "kube-system" || !addon.CreateNamespace || len(addon.Versions) != 2 {
		t.Errorf("united to %+v", addon)
	}
	other := "- {name: a, targetNamespace: other, versions: [{version: \"2\"}]}\n"
	_, err = documents.Read(t.Context(), folder(map[string]string{"a.yaml": first, "b.yaml": other}))
	if err == nil || !strings.Contains(err.Error(), `add-on "a" has targetNamespace "other"`) {
		t.Errorf("two namespaces are united: %v", err)
	}
}
