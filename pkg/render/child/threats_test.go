package child_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/child"
	"github.com/trellis-addons/trellis/test/long"
	"github.com/trellis-addons/trellis/test/rendering"
)

// Cases of the threat model again, with a child: a method's refusal must come back as the same refusal.

// TestSchemaReadsNothingFromElsewhereInTheChild (V14): A schema that names URLs or files reads none of them in the
// child either. The test fails when the schema's references are followed, when the child can follow them, or when a
// refusal is lost on its way.
func TestSchemaReadsNothingFromElsewhereInTheChild(t *testing.T) {
	var asked atomic.Int64
	canary := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = writer.Write([]byte("true"))
	}))
	defer canary.Close()
	file := filepath.Join(t.TempDir(), "token.json")
	if err := os.WriteFile(file, []byte(`{"const": "hunter2"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	pool := rendering.Pool(t, child.Options{})
	for _, target := range []string{canary.URL + "/a.json", "file://" + file, "urn:example:a"} {
		schema := `{"properties": {"a": {"$ref": "` + target + `"}}}`
		_, err := renderWith(t, pool, rendering.Helm, chartFolder("values.schema.json", schema, "templates/a.yaml", configMap+"a"))
		var refused *render.ChartError
		if !errors.As(err, &refused) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want ChartError", target, err)
		}
	}
	if asked.Load() != 0 {
		t.Errorf("the canary saw %d requests", asked.Load())
	}
}

// TestSchemasThatAreNoneEndNoChild (V08): An invalid schema is an error, and ends no child. The test fails when it
// ends the child, which would return DiedError.
func TestSchemasThatAreNoneEndNoChild(t *testing.T) {
	long.Heavy(t)
	pool := rendering.Pool(t, child.Options{})
	for _, schema := range []string{
		"{", "[]", `"x"`, "\x00", "\xff\xfe", `{"type":[null]}`, `{"properties":null}`, `{"properties":{"a":null}}`, `{"required":[null]}`,
		`{"$ref":null}`, `{"$ref":"#/a/%"}`, `{"items":[[]]}`, `{"enum":0}`, `{"pattern":"("}`, `{"$schema":"#"}`, `{"definitions":[{}]}`,
		strings.Repeat(`[`, 20_000), strings.Repeat(`{"a":`, 20_000),
	} {
		_, err := renderWith(t, pool, rendering.Helm, chartFolder("values.schema.json", schema, "templates/a.yaml", configMap+"a"))
		var refused *render.ChartError
		if err != nil && !errors.As(err, &refused) {
			t.Errorf("%.30q: got %T %v", schema, err, err)
		}
	}
	expectHarmless(t, pool)
}

// TestNoNameIsLookedUpInTheChild (V09): No name is looked up in the child. The test fails when one is: the child has
// no resolver and no sockets, and the function returns nothing.
func TestNoNameIsLookedUpInTheChild(t *testing.T) {
	pool := rendering.Pool(t, child.Options{})
	template := configMap + "a\ndata: {host: \"{{ getHostByName \"localhost\" }}\"}\n"
	result, err := renderWith(t, pool, rendering.Helm, chartFolder("templates/a.yaml", template))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"host": ""}, result.Objects[0].Object["data"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNothingOfValuesComesBackInErrors (AC11): No error of the child, and no note of a chart, has a value. The test
// fails when a template's own message, with values in it, is returned, or when notes are.
func TestNothingOfValuesComesBackInErrors(t *testing.T) {
	pool := rendering.Pool(t, child.Options{})
	for method, path := range map[string]string{rendering.GoTemplate: "a.yaml", rendering.Helm: "templates/a.yaml"} {
		values, content := ".Variables", folder(path, "")
		if method == rendering.Helm {
			values, content = ".Values", chartFolder("templates/NOTES.txt", "{{ .Values.password }}")
		}
		for _, text := range []string{"{{ fail " + values + ".password }}", "{{ fail (b64enc " + values + ".password) }}", configMap + "\"{{ " + values + ".password }}"} {
			content[path] = &fstest.MapFile{Data: []byte(text)}
			asked := input(content)
			asked.Values = map[string]any{"password": "hunter2-is-the-word"}
			_, err := pool.Renderer(method, child.AllFiles).Render(t.Context(), asked)
			if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "aHVudGVy") || len(err.Error()) > 1024 {
				t.Errorf("%s: %s: got %v", method, text, err)
			}
		}
	}
	noted := chartFolder("templates/NOTES.txt", "kind: Note", "templates/a.yaml", configMap+"a")
	result, err := renderWith(t, pool, rendering.Helm, noted)
	if err != nil || len(result.Objects) != 1 || strings.Contains(result.Chart.Manifest, "Note") {
		t.Errorf("notes: got %v, %v", result.Objects, err)
	}
}
