package gotemplate

import (
	"context"
	"errors"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"text/template"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/redact"
)

// output is the text that one file renders to.
type output struct {
	ctx  context.Context
	text strings.Builder
	// limit is for this text; most is for the whole rendering, and is named in messages.
	limit, most int
	places      places
	file        file
	// passed are the marks in the order of execution, with the text's length at that time.
	passed []passed
}

// maxPassed is the maximum number of recorded marks; later places are less exact.
const maxPassed = 1 << 20

type passed struct{ offset, place int }

// Write implements io.Writer; it refuses more than the limit, and everything once time is up.
func (o *output) Write(data []byte) (int, error) {
	if o.ctx.Err() != nil {
		return 0, o.ctx.Err()
	}
	if o.text.Len()+len(data) > o.limit {
		return 0, &render.LimitError{What: "bytes of rendered text", Max: o.most}
	}
	return o.text.Write(data)
}

// mark is called by every mark in the templates. Of several at one offset the last counts.
func (o *output) mark(place int) (string, error) {
	here := passed{offset: o.text.Len(), place: place}
	last := len(o.passed) - 1
	switch {
	case last >= 0 && o.passed[last].offset == here.offset:
		o.passed[last] = here
	case last < maxPassed:
		o.passed = append(o.passed, here)
	}
	return "", o.ctx.Err()
}

// at returns the template line that wrote a byte of the output.
func (o *output) at(offset int) (string, int) {
	next := sort.Search(len(o.passed), func(i int) bool { return o.passed[i].offset > offset })
	if next == 0 {
		return o.file.path, 1
	}
	mark := o.passed[next-1]
	place := o.places[mark.place]
	further := strings.Count(o.text.String()[mark.offset:min(offset, o.text.Len())], "\n")
	return place.file, place.line + min(further, place.lines)
}

func (r *rendering) execute(file file, limit int) (*output, error) {
	output := &output{ctx: r.ctx, limit: limit, most: r.limits.bytes, places: r.places, file: file}
	r.set.Funcs(template.FuncMap{markFunction: output.mark})
	err := r.set.ExecuteTemplate(output, file.path, r.seen())
	tooLarge, isTooLarge := errors.AsType[*render.LimitError](err)
	switch {
	case err == nil:
		return output, nil
	case isTooLarge:
		return nil, tooLarge
	case errors.Is(r.ctx.Err(), context.DeadlineExceeded):
		name, line := output.at(output.text.Len())
		return nil, &render.TemplateError{
			File: name, Line: line, Problem: "rendering takes longer than " + r.limits.time.String(), Stage: render.StageTime,
		}
	case r.ctx.Err() != nil:
		return nil, r.ctx.Err()
	}
	return nil, r.templateError(file, err, render.StageOf(err.Error()))
}

// seen is the data that templates see.
func (r *rendering) seen() any {
	if r.root != nil {
		return r.root
	}
	return r.data
}

// located reads file and line from errors of text/template: "template: NAME:LINE:COLUMN: text".
var located = regexp.MustCompile(`(?s)^template: (.+?):(\d+):(?:\d+:)? (.*)$`)

// templateError is a template's error without values.
func (r *rendering) templateError(file file, err error, stage render.Stage) error {
	text := err.Error()
	text = text[:min(len(text), redact.MaxLook)]
	made := &render.TemplateError{File: file.path, Problem: r.redactor.Text(text), Stage: stage}
	if match := located.FindStringSubmatch(text); match != nil {
		made.File = match[1]
		made.Line, _ = strconv.Atoi(match[2])
		made.Problem = r.redactor.Text(match[3])
	}
	made.Problem = hinted(made.Problem)
	return made
}

// rootTypes are the types of a template's root data.
var rootTypes = regexp.MustCompile(`in type (\*templatedata\.Data|gotemplate\.valuesData)$`)

// hinted adds the correct syntax to a problem typical for authors of Helm templates.
func hinted(problem string) string {
	switch {
	case strings.HasPrefix(problem, `function "required" not defined`):
		return problem + `: write {{ if not .Variables.name }}{{ fail "set name" }}{{ end }}`
	case strings.HasPrefix(problem, `function "`) && strings.HasSuffix(problem, `" not defined`):
		return problem + ": method go-template has the functions of sprig and KKP"
	}
	return rootTypes.ReplaceAllLiteralString(problem, "of the template data, which has .Variables, .Cluster and others")
}
