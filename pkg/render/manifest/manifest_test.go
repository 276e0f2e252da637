package manifest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/manifest"
)

func TestSplit(t *testing.T) {
	for _, test := range []struct {
		why, text string
		want      []string
	}{
		{"nothing", "", []string{""}},
		{"one document", "a: 1\n", []string{"a: 1\n"}},
		{"a marker between", "a: 1\n---\nb: 2\n", []string{"a: 1\n", "\nb: 2\n"}},
		{"a marker first and last", "---\na: 1\n---\n", []string{"", "\na: 1\n", "\n"}},
		{"content behind the marker", "a: 1\n--- # Source: b\nb: 2\n", []string{"a: 1\n", " # Source: b\nb: 2\n"}},
		{"line ends of another system", "a: 1\r\n---\r\nb: 2\r\n", []string{"a: 1\r\n", "\r\nb: 2\r\n"}},
		{"an end marker", "a: 1\n...\n---\nb: 2\n", []string{"a: 1\n", "\n", "\nb: 2\n"}},
		{"dashes in a block scalar", "a: |\n  ---\n  b\n", []string{"a: |\n  ---\n  b\n"}},
		{"more dashes", "----\n---a\n -\n", []string{"----\n---a\n -\n"}},
	} {
		t.Run(test.why, func(t *testing.T) {
			var got []string
			for _, document := range manifest.Split(test.text) {
				got = append(got, document.Text)
				if test.text[document.Offset:document.Offset+len(document.Text)] != document.Text {
					t.Errorf("offset %d of %q is wrong", document.Offset, document.Text)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func lines(text string) manifest.Source {
	at := func(offset int) (string, int) { return "a.yaml", 1 + strings.Count(text[:offset], "\n") }
	return manifest.Source{Text: text, At: at}
}

// aliasBomb has ten times more words with each level.
func aliasBomb(levels int) string {
	text := "a0: &a0 word\n"
	for level := range levels {
		text += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", level+1, level+1, strings.Repeat(fmt.Sprintf("*a%d,", level), 9), level)
	}
	return text
}

// TestHostileManifestsAreRefused (AC06): Manifests that are deep, large, of aliases or with duplicate keys are
// refused.
func TestHostileManifestsAreRefused(t *testing.T) {
	for why, text := range map[string]string{
		"an alias bomb":      aliasBomb(8),
		"10,000 levels":      strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000),
		"lists inside lists": strings.Repeat("{kind: List, items: [", 300) + strings.Repeat("]}", 300),
		"a key twice":        "kind: A\nkind: B\n",
		"an item of text":    "{kind: List, items: [a]}",
	} {
		t.Run(why, func(t *testing.T) {
			var reader manifest.Reader
			var refused *render.TemplateError
			if _, err := reader.Read(lines(text)); !errors.As(err, &refused) {
				t.Errorf("got %v, want TemplateError", err)
			}
		})
	}
}

// TestManifestsMayOverrideWhatTheyMerge fails when a manifest may not override a field that it merges.
func TestManifestsMayOverrideWhatTheyMerge(t *testing.T) {
	var reader manifest.Reader
	objects, err := reader.Read(lines("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: &l {team: a, tier: b}, annotations: {<<: *l, team: c}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"team": "c", "tier": "b"}, objects[0].GetAnnotations()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDuplicatesWhereTheyAreTaken(t *testing.T) {
	reader := manifest.Reader{Duplicates: true}
	objects, err := reader.Read(lines("apiVersion: v1\nkind: A\nkind: B\nmetadata: {name: c, name: d}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if objects[0].GetKind() != "B" || objects[0].GetName() != "d" {
		t.Errorf("got %s %q: the last of equal keys should count", objects[0].GetKind(), objects[0].GetName())
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"apiVersion: v1\nkind: A\nmetadata: {name: a}\n", "---\n...\n--- |\n ---\n", "{kind: List, items: [{apiVersion: v1, kind: A, metadata: {name: b}}]}",
		"a: &a\n  b: *a\n", "\r\n---\r\n", "%YAML 1.1\n---\na: 1\n", "? {a: b}\n: c\n", "<<: {a: 1}\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		joined := 0
		for _, document := range manifest.Split(text) {
			if document.Offset < joined || text[document.Offset:document.Offset+len(document.Text)] != document.Text {
				t.Fatalf("document %q is not at %d", document.Text, document.Offset)
			}
			joined = document.Offset + len(document.Text)
		}
		if joined != len(text) {
			t.Fatalf("the last document ends at %d of %d", joined, len(text))
		}
		var reader manifest.Reader
		objects, err := reader.Read(lines(text))
		if err != nil {
			var place *render.TemplateError
			var limit *render.LimitError
			if !errors.As(err, &place) && !errors.As(err, &limit) {
				t.Fatalf("%v is of another type", err)
			}
			return
		}
		for _, object := range objects {
			if object.GetName() == "" || object.GetKind() == "" || object.GetAPIVersion() == "" {
				t.Fatalf("an object without identity: %v", object.Object)
			}
		}
	})
}

// TestListsWithoutItemsSaySo fails when a List without items is reported as an object without a name.
func TestListsWithoutItemsSaySo(t *testing.T) {
	for _, text := range []string{
		"{apiVersion: v1, kind: List, items: null}", "{apiVersion: v1, kind: List}", "apiVersion: v1\nkind: List\nitems:\n",
		"{apiVersion: v1, kind: List, items: {}}", "{apiVersion: v1, kind: List, metadata: {name: a}}",
	} {
		var reader manifest.Reader
		_, err := reader.Read(manifest.Source{Text: text, At: func(int) (string, int) { return "a.yaml", 1 }})
		if err == nil || !strings.Contains(err.Error(), "the List has no items") {
			t.Errorf("%s: got %v", text, err)
		}
	}
	var reader manifest.Reader
	if found, err := reader.Read(manifest.Source{Text: "{apiVersion: v1, kind: List, items: []}", At: func(int) (string, int) { return "a.yaml", 1 }}); err != nil || len(found) > 0 {
		t.Errorf("got %v, %v", found, err)
	}
}
