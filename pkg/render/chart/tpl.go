package chart

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/redact"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// Function tpl renders text from the values. If the data have secrets, text that does not come from the chart must
// not see them. Helm's engine accepts no other tpl. So calls in templates are rewritten (calls.go) to call a template
// of ours, which gets text and data from a guard first. The guard is an object for function lookup, the one function
// of the engine that can be extended, of a kind that no cluster has.
const (
	guardedTpl  = "trellis.tpl"
	guardFile   = "templates/_trellis-tpl.tpl"
	guardGroup  = "render.trellis/v1"
	guardKind   = "Tpl"
	guardSource = `{{define "` + guardedTpl + `"}}{{$guard := lookup "` + guardGroup + `" "` + guardKind + `" "" "guard"}}` +
		`{{$turn := call $guard.enter (index . 0)}}{{tpl (call $guard.text (index . 0)) (call $guard.data (index . 0) (index . 1))}}` +
		`{{call $guard.leave $turn}}{{end}}`
)

const (
	// shortestSecret is the length from which a line of a secret counts alone.
	shortestSecret = 12
	actionMark     = "{{"
)

type guard struct {
	secrets []string
	// own are the chart's texts with actions, longest first.
	own []string
	// now is the innermost text being rendered; nil if that is the chart's.
	now *turn
}

// turn is one call of tpl. Its text can't reach the outer calls.
type turn struct {
	within *turn
	// foreign says that its text, or an outer one, is not the chart's own.
	foreign bool
}

func (g *guard) enter(text string) *turn {
	g.now = &turn{within: g.now, foreign: g.isForeign() || !g.isOwn(text)}
	return g.now
}

func (g *guard) leave(ended *turn) string {
	g.now = ended.within
	return ""
}

// isForeign reports whether text of others is being rendered. For such text lookup finds nothing.
func (g *guard) isForeign() bool { return g.now != nil && g.now.foreign }

// newGuard reads the chart's own texts, before values are merged into it.
func newGuard(chart *helmchart.Chart, input render.Input) *guard {
	g := &guard{secrets: secretsOf(input.Data)}
	if input.GuardFound {
		g.secrets = append(g.secrets, render.SecretTexts(input.Found)...)
	}
	if len(g.secrets) == 0 && (!input.GuardFound || len(input.Found) == 0) {
		return nil
	}
	g.ownOf(chart)
	g.ownValues(input.CatalogueValues)
	slices.SortFunc(g.own, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	g.own = slices.Compact(g.own)
	return g
}

func secretsOf(data templatedata.Data) []string {
	var found []string
	redact.EachText(templatedata.SecretsOf(data), func(text string) {
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

func (g *guard) ownValues(content map[string]any) { redact.EachText(content, g.ownText) }

var wholeAction = regexp.MustCompile(`(?s)\{\{.*?\}\}`)

// ownText adds a text with whole actions: adjacent text must not become part of one.
func (g *guard) ownText(text string) {
	rest := wholeAction.ReplaceAllString(text, "")
	if strings.Contains(text, actionMark) && !strings.Contains(rest, actionMark) && !strings.Contains(rest, "}}") {
		g.own = append(g.own, text)
	}
}

// isOwn reports whether every action in a text is in the chart or the catalogue's values.
func (g *guard) isOwn(text string) bool {
	for _, own := range g.own {
		if !strings.Contains(text, actionMark) {
			break
		}
		text = strings.ReplaceAll(text, own, edgesOf(own))
	}
	return !strings.Contains(text, actionMark)
}

// edgesOf returns the replacement of own text. A brace at its end stays: another one would begin an action.
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

// text is the text that tpl renders instead: calls in the chart's own text are guarded, too.
func (g *guard) text(text string) string {
	if !g.isOwn(text) {
		return text
	}
	return withGuardedCalls(text)
}

// data is the data that tpl renders a text with: without secrets, unless the text is the chart's own.
func (g *guard) data(text string, data any) any {
	if g.isOwn(text) {
		return data
	}
	return (&cleaning{guard: g, done: map[uintptr]any{}}).clean(data)
}

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
