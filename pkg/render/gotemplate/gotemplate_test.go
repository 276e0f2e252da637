package gotemplate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/gotemplate"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
	"github.com/trellis-addons/trellis/test/long"
)

// folder creates a file system of "path: text" pairs.
func folder(pairs ...string) fstest.MapFS {
	content := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		content[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return content
}

func renderFolder(content fstest.MapFS, values map[string]any) (render.Result, error) {
	data := templatedata.Data{Cluster: templatedata.ClusterData{Name: "47s2ddlfgj", MajorMinorVersion: "1.36"}}
	return gotemplate.New().Render(context.Background(), render.Input{Addon: "demo", Content: content, Values: values, Data: data})
}

// TestTimeIsOfTheMachine fails when the failure of a template that takes too long is permanent.
func TestTimeIsOfTheMachine(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	_, inManifests := gotemplate.New().Render(ctx, render.Input{Addon: "demo", Content: folder("a.yaml", configMap+"a\n")})
	_, inValues := gotemplate.New().RenderValues(ctx, render.ValuesInput{Addon: "demo", Template: "a: 1"})
	for _, err := range []error{inManifests, inValues} {
		if late, ok := errors.AsType[*render.TemplateError](err); !ok || late.Stage != render.StageTime {
			t.Errorf("%T %v", err, err)
		}
	}
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: "

func TestErrorsNameThePlace(t *testing.T) {
	for _, test := range []struct {
		why     string
		content fstest.MapFS
		values  map[string]any
		file    string
		line    int
		problem string
		stage   render.Stage
	}{
		{
			why:     "a template that doesn't parse",
			content: folder("a.yaml", configMap+"a\n", "b/b.yaml", "apiVersion: v1\n\n{{ if }}\n"),
			file:    "b/b.yaml", line: 3, problem: "missing value for if", stage: render.StageContent,
		},
		{
			why:     "a block that is not closed",
			content: folder("a.yaml", "{{ if true }}\n"+configMap+"a\n", "b.yaml", "{{ end }}\n"),
			file:    "a.yaml", line: 6, problem: "unexpected EOF", stage: render.StageContent,
		},
		{
			why:     "a function that fails",
			content: folder("a.yaml", configMap+"a\n", "b.yaml", "\n\n"+configMap+"{{ .Variables.list | first }}\n"),
			values:  map[string]any{"list": int64(1)},
			file:    "b.yaml", line: 6, problem: `executing "b.yaml" at <first>: error calling first: Cannot find first on type int64`,
		},
		{
			why:     "a mistake in what another file defines",
			content: folder("a.yaml", "\n{{ define \"name\" }}\n{{ fail \"no\" }}{{ end }}", "b.yaml", configMap+`{{ template "name" . }}`),
			file:    "a.yaml", line: 3, problem: `executing "name" at <fail "no">: error calling fail: no`,
		},
		{
			why:     "a field that the data does not have",
			content: folder("a.yaml", configMap+"{{ .Cluster.Nmae }}"),
			file:    "a.yaml", line: 4, problem: `executing "a.yaml" at <.Cluster.Nmae>: can't evaluate field Nmae in type templatedata.ClusterData`, stage: render.StageContent,
		},
		{
			why:     "rendered YAML is wrong behind a loop",
			content: folder("a.yaml", "{{ range until 20 }}\n---\n"+configMap+"m-{{ . }}\n{{ end }}\n---\n"+configMap+"x\n  wrong\n data:\n"),
			file:    "a.yaml", line: 13, problem: "the rendered manifest is not valid YAML: could not find expected ':'", stage: render.StageOutput,
		},
		{
			why:     "a key twice",
			content: folder("a.yaml", configMap+"a\ndata:\n  x: \"1\"\n  y: \"2\"\n  x: \"3\"\n"),
			file:    "a.yaml", line: 8, problem: `the rendered manifest has key "x" twice`, stage: render.StageOutput,
		},
		{
			why:     "no kind",
			content: folder("a.yaml", configMap+"a\n---\n# nothing yet\n\napiVersion: v1\nmetadata: {name: b}\n"),
			file:    "a.yaml", line: 8, problem: "the rendered manifest has no kind", stage: render.StageOutput,
		},
		{
			why:     "no apiVersion",
			content: folder("a.yaml", "kind: ConfigMap\nmetadata: {name: b}\n"),
			file:    "a.yaml", line: 1, problem: "the rendered manifest has no apiVersion", stage: render.StageOutput,
		},
		{
			why:     "no name",
			content: folder("a.yaml", "apiVersion: v1\nkind: ConfigMap\n"),
			file:    "a.yaml", line: 1, problem: "the rendered manifest has no metadata.name",
		},
		{
			why:     "a name that is a number",
			content: folder("a.yaml", configMap+"1\n"),
			file:    "a.yaml", line: 1, problem: "the rendered manifest has a metadata.name that is not a string",
		},
		{
			why:     "a generated name",
			content: folder("a.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {generateName: b-}\n"),
			file:    "a.yaml", line: 1, problem: "Pod has metadata.generateName: give it a name, since each attempt would create another one",
		},
		{
			why:     "text that is no object",
			content: folder("a.yaml", configMap+"a\n", "b.yaml", "\nhello\n"),
			file:    "b.yaml", line: 2, problem: "the rendered manifest is not an object", stage: render.StageOutput,
		},
		{
			why:     "a missing key that is printed",
			content: folder("a.yaml", configMap+"a\ndata:\n  size: {{ .Variables.size }}\n"),
			file:    "a.yaml", problem: `ConfigMap "a" has no value for data.size: set the key that the template prints there, or give it a default`,
		},
		{
			why:     "one name defined in two files",
			content: folder("a.yaml", `{{ define "x" }}1{{ end }}`, "b.yaml", `{{ define "x" }}2{{ end }}`),
			file:    "b.yaml", problem: `defines "x", as a.yaml does: give one of them another name`, stage: render.StageContent,
		},
	} {
		t.Run(test.why, func(t *testing.T) {
			_, err := renderFolder(test.content, test.values)
			var refused *render.TemplateError
			if !errors.As(err, &refused) {
				t.Fatalf("got %v, want TemplateError", err)
			}
			want := &render.TemplateError{File: test.file, Line: test.line, Problem: test.problem, Stage: test.stage}
			if diff := cmp.Diff(want, refused); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOneSetOfTemplates(t *testing.T) {
	result, err := renderFolder(folder(
		"sub/later.yaml", `{{ define "labels" }}{app: demo}{{ end }}`,
		"a.yaml", "{{- if true -}}\n"+configMap+"a\n  labels: {{ template \"labels\" . }}\n{{- end -}}",
		"b.yaml", "{{- range list \"b\" \"c\" }}\n---\n"+configMap+"{{ . }}\n{{- end }}",
		"readme.md", "{{ not a template", "c.yml", "neither",
	), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, object := range result.Objects {
		names = append(names, object.GetName())
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"app": "demo"}, result.Objects[0].GetLabels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

// TestNoManifests (AC32): A path without templates is distinguished from templates that render to nothing. The test
// fails when the error doesn't count them.
func TestNoManifests(t *testing.T) {
	for why, test := range map[string]struct {
		content   fstest.MapFS
		templates int
	}{
		"an empty folder":         {folder(), 0},
		"files of another kind":   {folder("a.yml", configMap+"a\n", "b.json", "{}"), 0},
		"nothing but comments":    {folder("a.yaml", "# nothing\n---\n---\n", "b.yaml", " \n"), 2},
		"a condition that is off": {folder("a.yaml", "{{ if .Variables.on }}"+configMap+"a{{ end }}"), 1},
		"an empty list":           {folder("a.yaml", "apiVersion: v1\nkind: List\nitems: []\n"), 1},
	} {
		t.Run(why, func(t *testing.T) {
			_, err := renderFolder(test.content, nil)
			var none *render.NoManifestsError
			if !errors.As(err, &none) || none.Addon != "demo" || none.Templates != test.templates {
				t.Errorf("got %v, want NoManifestsError of %d templates", err, test.templates)
			}
		})
	}
}

// TestRunawayTemplatesAreRefused (AC01): Output beyond the limits is refused, and a loop without output ends at the
// time limit. The child ends templates that use memory: TestBombs of package child.
func TestRunawayTemplatesAreRefused(t *testing.T) {
	long.Heavy(t)
	t.Run("more text than is taken", func(t *testing.T) {
		var limit *render.LimitError
		text := `{{ range until 100 }}# {{ repeat 1000000 "a" }}{{ end }}`
		if _, err := renderFolder(folder("a.yaml", text), nil); !errors.As(err, &limit) {
			t.Errorf("got %v, want LimitError", err)
		}
	})
	t.Run("more objects than are taken", func(t *testing.T) {
		var limit *render.LimitError
		text := "{{ range until 2001 }}\n---\n" + configMap + "m-{{ . }}\n{{ end }}"
		if _, err := renderFolder(folder("a.yaml", text), nil); !errors.As(err, &limit) {
			t.Errorf("got %v, want LimitError", err)
		}
	})
	t.Run("an object that is too large", func(t *testing.T) {
		var limit *render.LimitError
		if _, err := renderFolder(folder("a.yaml", configMap+"a\ndata: {x: {{ repeat 1048576 \"a\" }}}"), nil); !errors.As(err, &limit) {
			t.Errorf("got %v, want LimitError", err)
		}
	})
	t.Run("a loop without output ends with its time", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		content := folder("a.yaml", `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`)
		failed := make(chan error)
		go func() {
			_, err := gotemplate.New().Render(ctx, render.Input{Addon: "demo", Content: content})
			failed <- err
		}()
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the context's error", err)
		}
	})
}

// TestTemplatesSeeNoNetworkAndNoEnvironment (AC03): Functions of environment and network are absent, and the error
// names them.
func TestTemplatesSeeNoNetworkAndNoEnvironment(t *testing.T) {
	t.Setenv("TRELLIS_TEST_SECRET", "hunter2")
	for _, text := range []string{
		`{{ env "TRELLIS_TEST_SECRET" }}`, `{{ expandenv "$TRELLIS_TEST_SECRET" }}`, `{{ getHostByName "example.com" }}`,
	} {
		_, err := renderFolder(folder("a.yaml", text), nil)
		var refused *render.TemplateError
		if !errors.As(err, &refused) || !strings.Contains(refused.Problem, "function") || !strings.Contains(refused.Problem, "not defined") {
			t.Errorf("%s: got %v, want an unknown function", text, err)
		}
	}
}

// TestErrorsOfTemplatesHoldNoValue (AC11): Errors of a template have no value.
func TestErrorsOfTemplatesHoldNoValue(t *testing.T) {
	values := map[string]any{"password": "hunter2 is the word", "list": []any{"other-secret"}}
	for _, text := range []string{
		`{{ fail .Variables.password }}`, `{{ fail (b64enc .Variables.password) }}`, `{{ fail (first .Variables.list) }}`,
		`{{ index .Variables.list .Variables.password }}`, `{{ .Variables.password | toDate "2006" | fail }}`,
		`{{ mustFromJson .Variables.password }}`, configMap + `"{{ .Variables.password }}`, configMap + `*{{ first .Variables.list }}`,
	} {
		_, err := renderFolder(folder("a.yaml", text), values)
		if err == nil {
			t.Errorf("%s: rendered", text)
			continue
		}
		for _, secret := range []string{"hunter2", "aHVudGVyMi", "other-secret"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error %q holds a value", text, err)
			}
		}
	}
}

// TestLongMessagesOfTemplatesAreCut (AC12): A template's failure message is cut.
func TestLongMessagesOfTemplatesAreCut(t *testing.T) {
	_, err := renderFolder(folder("a.yaml", `{{ fail (repeat 1000000 "long\n") }}`), nil)
	if err == nil || len(err.Error()) > 600 || strings.Contains(err.Error(), "\n") {
		t.Errorf("got an error of %d bytes", len(err.Error()))
	}
}

func TestRenderTwice(t *testing.T) {
	content := folder("a.yaml", configMap+"a\ndata:\n{{ range $k, $v := .Variables }}  {{ $k }}: \"{{ $v }}\"\n{{ end }}"+
		"{{ $_ := set .Variables \"c\" 3 }}")
	values := map[string]any{"b": int64(2), "a": int64(1), "d": map[string]any{"x": nil}}
	first, err := renderFolder(content, values)
	if err != nil {
		t.Fatal(err)
	}
	second, err := renderFolder(content, values)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Objects, second.Objects); diff != "" {
		t.Errorf("the second rendering differs:\n%s", diff)
	}
	if len(values) != 3 {
		t.Error("the template changed the caller's values")
	}
}
