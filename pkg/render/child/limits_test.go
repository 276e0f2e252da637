package child_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/child"
	"github.com/trellis-addons/trellis/test/long"
	"github.com/trellis-addons/trellis/test/rendering"
)

// small limits end bombs soon; a harmless rendering needs far less.
func small() child.Options {
	return child.Options{Memory: smallMemory, CPU: 2 * time.Second}
}

func probed(t *testing.T, pool *child.Pool, name string) error {
	t.Helper()
	asked := input(folder())
	asked.Addon = name
	_, err := pool.Renderer(probe, child.AllFiles).Render(t.Context(), asked)
	if err == nil {
		t.Fatalf("%s: rendered", name)
	}
	return err
}

// TestLimits checks each limit separately, and that later renderings succeed.
func TestLimits(t *testing.T) {
	long.Heavy(t)
	for name, test := range map[string]struct {
		limits child.Options
		limit  string
	}{
		"hoard": {child.Options{Memory: smallMemory}, "memory"}, // without a limit of time, for a busy machine
		"spin":  {small(), "cpu"},
	} {
		t.Run(name, func(t *testing.T) {
			pool := rendering.Pool(t, test.limits)
			expectExhausted(t, probed(t, pool, name), test.limit)
			expectHarmless(t, pool)
		})
	}
	t.Run("wait", func(t *testing.T) {
		pool := rendering.Pool(t, child.Options{Timeout: time.Second})
		expectExhausted(t, probed(t, pool, "wait"), "time")
	})
}

func TestNobodyWaits(t *testing.T) {
	pool := rendering.Pool(t, child.Options{})
	before := pids(t, pool, "cluster-a", 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	asked := input(folder("a.yaml", ""))
	asked.Addon = "wait"
	// Content is read when it is sent, so a child has been chosen by then.
	asked.Content = readFirst{asked.Content, func() { time.AfterFunc(50*time.Millisecond, func() { cancel(gone) }) }}
	if _, err := pool.Renderer(probe, child.AllFiles).Render(ctx, asked); !errors.Is(err, gone) {
		t.Errorf("got %v, want the reason of the context", err)
	}
	if after := pids(t, pool, "cluster-a", 1); after[0] == before[0] {
		t.Error("the child goes on")
	}
}

// readFirst is content that calls a function when it is opened.
type readFirst struct {
	fs.FS
	opened func()
}

// Open is called for the folder first.
func (r readFirst) Open(name string) (fs.File, error) {
	r.opened()
	return r.FS.Open(name)
}

// TestHostileChild checks the answers of a compromised child.
func TestHostileChild(t *testing.T) {
	pool := rendering.Pool(t, small())
	var died *render.DiedError
	for _, name := range []string{"exit", "deep stack"} {
		if err := probed(t, pool, name); !errors.As(err, &died) {
			t.Errorf("%s: got %v, want DiedError", name, err)
		}
	}
	var refused *render.ProtocolError
	for _, name := range []string{"noise", "flood"} {
		if err := probed(t, pool, name); !errors.As(err, &refused) {
			t.Errorf("%s: got %v, want render.ProtocolError", name, err)
		}
	}
	for _, name := range []string{"secret failure", "secret"} {
		err := probed(t, pool, name)
		if text := err.Error(); len(text) > 1024 || strings.Contains(text, "text") || strings.ContainsAny(text, "\x1b\n") {
			t.Errorf("%s: got %d bytes: %.100q", name, len(text), text)
		}
	}
	expectHarmless(t, pool)
}

// bombs are templates by their problem, each with its method; empty: both methods.
var bombs = map[string]struct {
	method string
	text   string
}{
	"a list of 2,000,000,000":      {"", `{{ range until 2000000000 }}x{{ end }}`},
	"a list that overflows":        {"", `{{ range untilStep -9223372036854775807 9223372036854775807 1 }}{{ end }}`},
	"a long sequence":              {"", `{{ seq 1 2000000000 }}`},
	"a text of a billion letters":  {"", `{{ repeat 1000000000 "a" }}`},
	"a repetition that overflows":  {"", `{{ repeat 9223372036854775807 "aa" }}`},
	"many random bytes":            {"", `{{ randBytes 2000000000 }}`},
	"many random letters":          {"", `{{ randAlphaNum 2000000000 }}`},
	"a wide indentation":           {"", `{{ indent 2000000000 "a" }}`},
	"a text replaced by long ones": {"", `{{ replace "a" (repeat 1000000 "b") (repeat 1000000 "a") }}`},
	"a long join":                  {rendering.GoTemplate, `{{ join (splitList "" (repeat 100000 "a")) (repeat 1000000 "b") }}`},
	"a step that overflows":        {"", `{{ range untilStep 0 9223372036854775807 4611686018427387904 }}x{{ end }}`},
	"a text that doubles":          {"", `{{ $x := "ab" }}{{ range until 40 }}{{ $x = print $x $x }}{{ end }}`},
	"a list that doubles":          {"", `{{ $x := list 1 2 }}{{ range until 40 }}{{ $x = concat $x $x }}{{ end }}`},
	"loops in loops":               {"", `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`},
	"more text than is taken":      {"", `{{ range until 100 }}{{ repeat 10000000 "a" }}{{ end }}`},
	"keys without end":             {"", `{{ $x := dict }}{{ range $i := until 100000000 }}{{ $_ := set $x (print $i) (repeat 1000 "a") }}{{ end }}`},
	"a template that calls itself": {"", `{{ define "self" }}{{ template "self" . }}{{ end }}{{ template "self" . }}`},
	"a value that calls itself":    {rendering.Helm, `{{ $_ := set .Values "self" "{{ tpl .Values.self . }}" }}{{ tpl .Values.self . }}`},
	"includes that call each other": {
		rendering.Helm, `{{ define "a" }}{{ include "b" . }}{{ end }}{{ define "b" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`,
	},
}

// TestBombs (AC01, AC02): Limits of memory and time end templates and values that never end. Every bomb ends in an
// error of a type that does not affect others and that names the add-on or a line of its templates, and the next
// rendering succeeds.
func TestBombs(t *testing.T) {
	long.Heavy(t)
	pool := rendering.Pool(t, small())
	for name, bomb := range bombs {
		for method, content := range map[string]fstest.MapFS{
			rendering.GoTemplate: folder("a.yaml", bomb.text), rendering.Helm: chartFolder("templates/a.yaml", bomb.text),
		} {
			if bomb.method != "" && bomb.method != method {
				continue
			}
			t.Run(method+": "+name, func(t *testing.T) {
				_, err := renderWith(t, pool, method, content)
				expectBounded(t, err)
				expectHarmless(t, pool)
			})
		}
	}
}

// expectBounded checks that an error names the reached limit, and the place.
func expectBounded(t *testing.T, err error) {
	t.Helper()
	var exhausted *render.ExhaustedError
	var died *render.DiedError
	var template *render.TemplateError
	var limit *render.LimitError
	switch {
	case errors.As(err, &exhausted) && exhausted.Addon != "" && exhausted.Most != "":
	case errors.As(err, &died) && died.Addon != "" && died.Of != "":
	case errors.As(err, &template) && template.File != "" && template.Line > 0:
	case errors.As(err, &limit):
	default:
		t.Errorf("got %T %v", err, err)
	}
	t.Logf("%v", err)
}

// TestLongMessagesOfTheChildAreCut (AC12): The failure message of a template is already cut in the child.
func TestLongMessagesOfTheChildAreCut(t *testing.T) {
	pool := rendering.Pool(t, child.Options{})
	for method, content := range map[string]render.Input{
		rendering.GoTemplate: input(folder("a.yaml", `{{ fail (repeat 1000000 "long\n") }}`)),
		rendering.Helm:       input(chartFolder("templates/a.yaml", `{{ fail (repeat 10000000 "long\n") }}`)),
	} {
		_, err := pool.Renderer(method, child.AllFiles).Render(t.Context(), content)
		if err == nil || len(err.Error()) > 1024 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: an error of %d bytes", method, len(err.Error()))
		}
	}
}

// TestDeepSchemaEndsTheChildAtMost (V02): A schema of a hundred thousand levels harms the renderer's process at most.
// TestDeepSchemaEndsTheChildAtMost and TestExtremeSchemaEndsTheChildAtMost check that only the child may end.
func TestDeepSchemaEndsTheChildAtMost(t *testing.T) {
	pool := rendering.Pool(t, small())
	deep := strings.Repeat(`{"not":`, 100_000) + `{}` + strings.Repeat(`}`, 100_000)
	_, err := renderWith(t, pool, rendering.Helm, chartFolder("values.schema.json", deep, "templates/a.yaml", configMap+"a"))
	var refused *render.ChartError
	if !errors.As(err, &refused) {
		t.Errorf("got %v, want ChartError", err)
	}
	expectHarmless(t, pool)
}

// TestExtremeSchemaEndsTheChildAtMost (V04): A schema of extreme numbers harms the renderer's process at most.
func TestExtremeSchemaEndsTheChildAtMost(t *testing.T) {
	pool := rendering.Pool(t, small())
	schema := `{"properties":{"b":{"pattern":"^(((a{1,1000}){1,1000}){1,1000})$","maxLength":1e308,"multipleOf":1e-308},` +
		`"a":{"multipleOf":1e-300000000,"maximum":1e300000000}}}`
	_, err := renderWith(t, pool, rendering.Helm, chartFolder("values.schema.json", schema, "templates/a.yaml", configMap+"a"))
	if err == nil {
		t.Error("rendered")
	}
	t.Logf("%v", err)
	expectHarmless(t, pool)
}

// TestLargeContentIsBounded (V01): Content of an add-on that is too large is refused within the renderer's limits.
func TestLargeContentIsBounded(t *testing.T) {
	long.Heavy(t)
	pool := rendering.Pool(t, child.Options{})
	big := strings.Repeat("a", 15<<20)
	pairs := []string{"templates/a.yaml", configMap + "a"}
	for _, name := range []string{"b", "c", "d", "e", "f"} {
		pairs = append(pairs, "files/"+name, big)
	}
	var limit *render.LimitError
	if _, err := renderWith(t, pool, rendering.Helm, chartFolder(pairs...)); !errors.As(err, &limit) {
		t.Errorf("got %v, want LimitError", err)
	}
	ignored := chartFolder(append(pairs, ".helmignore", "files/\n")...)
	if _, err := renderWith(t, pool, rendering.Helm, ignored); err != nil {
		t.Errorf("files that are ignored hinder: %v", err)
	}
}
