package chart

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/engine"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/templatedata"
)

// Function tpl renders text that comes with the values. Where the data hold secrets, text that is not the chart's own must not
// see them. Helm's engine takes no other tpl; so calls of it in templates are written anew (calls.go) as calls of a template
// of ours, which asks a guard for the text and the data before it calls the engine's. The guard is reached through function
// lookup, the one function of the engine that can be given something: an object of a kind that no cluster has.
const (
	guardedTpl  = "trellis.tpl"
	guardFile   = "templates/_trellis-tpl.tpl"
	guardGroup  = "render.trellis/v1"
	guardKind   = "Tpl"
	guardSource = `{{define "` + guardedTpl + `"}}{{$guard := lookup "` + guardGroup + `" "` + guardKind + `" "" "guard"}}` +
		`{{tpl (call $guard.text (index . 0)) (call $guard.data (index . 0) (index . 1))}}{{end}}`
)

const (
	// shortestSecret is the length from which on a line of a secret counts by itself.
	shortestSecret = 12
	actionMark     = "{{"
)

// guard decides what tpl gets to see.
type guard struct {
	secrets []string
	// own are texts with actions, longest first.
	own []string
}

// newGuard reads what is the chart's own: before values are merged into it.
func newGuard(chart *helmchart.Chart, input render.Input) *guard {
	g := &guard{secrets: secretsOf(input.Data)}
	if len(g.secrets) == 0 {
		return nil
	}
	g.ownOf(chart)
	g.ownValues(input.CatalogueValues)
	slices.SortFunc(g.own, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	g.own = slices.Compact(g.own)
	return g
}

// secretsOf are the secrets of the data, and their long lines.
func secretsOf(data templatedata.Data) []string {
	encoded, err := json.Marshal([]any{data.Credentials, data.Cluster.Kubeconfig, data.Cluster.Address.AdminToken})
	if err != nil {
		return nil
	}
	var content any
	if json.Unmarshal(encoded, &content) != nil {
		return nil
	}
	var found []string
	eachText(content, func(text string) {
		if text != "" {
			found = append(found, text)
		}
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); len(line) >= shortestSecret {
				found = append(found, line)
			}
		}
	})
	return found
}

func eachText(content any, visit func(text string)) {
	switch content := content.(type) {
	case string:
		visit(content)
	case map[string]any:
		for _, one := range content {
			eachText(one, visit)
		}
	case []any:
		for _, one := range content {
			eachText(one, visit)
		}
	}
}

func (g *guard) ownOf(chart *helmchart.Chart) {
	g.ownValues(chart.Values)
	for _, file := range chart.Files {
		g.ownText(string(file.Data))
		g.ownText(strings.TrimSpace(string(file.Data)))
	}
	for _, file := range chart.Templates {
		for _, text := range literals(string(file.Data)) {
			g.ownText(text)
		}
	}
	for _, dependency := range chart.Dependencies() {
		g.ownOf(dependency)
	}
}

func (g *guard) ownValues(content map[string]any) { eachText(content, g.ownText) }

// wholeAction is one action of a template.
var wholeAction = regexp.MustCompile(`(?s)\{\{.*?\}\}`)

// ownText takes a text with actions that are whole: what stands beside it must not become part of one.
func (g *guard) ownText(text string) {
	rest := wholeAction.ReplaceAllString(text, "")
	if strings.Contains(text, actionMark) && !strings.Contains(rest, actionMark) && !strings.Contains(rest, "}}") {
		g.own = append(g.own, text)
	}
}

// isOwn says whether every action in a text stands in the chart, or in the catalogue's values, word for word.
func (g *guard) isOwn(text string) bool {
	for _, own := range g.own {
		if !strings.Contains(text, actionMark) {
			break
		}
		text = strings.ReplaceAll(text, own, edgesOf(own))
	}
	return !strings.Contains(text, actionMark)
}

// edgesOf stands for a text of the chart's own. A brace at either end of it stays: with one beside it, it would begin an action.
func edgesOf(own string) string {
	edges := "\x00"
	if strings.HasPrefix(own, "{") {
		edges = "{" + edges
	}
	if strings.HasSuffix(own, "{") {
		edges += "{"
	}
	return edges
}

// text is what tpl renders in place of a text: the chart's own is guarded in turn.
func (g *guard) text(text string) string {
	if !g.isOwn(text) {
		return text
	}
	return withGuardedCalls(text)
}

// data is what tpl renders a text with: without secrets, where the text is not the chart's own.
func (g *guard) data(text string, data any) any {
	if g.isOwn(text) {
		return data
	}
	return (&cleaning{guard: g, done: map[uintptr]any{}}).clean(data)
}

// into puts the guard into a chart and its dependencies.
func (g *guard) into(chart *helmchart.Chart) {
	g.rewrite(chart)
	chart.Templates = append(chart.Templates, &helmchart.File{Name: guardFile, Data: []byte(guardSource)})
}

func (g *guard) rewrite(chart *helmchart.Chart) {
	for _, file := range chart.Templates {
		file.Data = []byte(withGuardedCalls(string(file.Data)))
	}
	for _, dependency := range chart.Dependencies() {
		g.rewrite(dependency)
	}
}

// GetClientFor implements engine.ClientProvider: nothing is found but the guard.
func (g *guard) GetClientFor(group, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	if group == guardGroup && kind == guardKind {
		return &resource{found: map[string]any{"text": g.text, "data": g.data}}, false, nil
	}
	return &resource{}, false, nil
}

var _ engine.ClientProvider = (*guard)(nil)

// resource is what lookup reads from.
type resource struct {
	dynamic.NamespaceableResourceInterface
	found map[string]any
}

// Get gives the guard's functions, as if they were an object.
func (r *resource) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	if r.found == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
	}
	return &unstructured.Unstructured{Object: r.found}, nil
}

// List finds nothing.
func (r *resource) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
}
