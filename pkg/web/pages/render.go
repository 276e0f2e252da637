package pages

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/serve/view"
	"github.com/trellis-addons/trellis/pkg/web/assets"
	"github.com/trellis-addons/trellis/pkg/web/config"
	"github.com/trellis-addons/trellis/pkg/web/upstream"
)

// views are the templates of pages, each with the layout.
type views struct{ pages map[string]*template.Template }

// parts are the elements that a script may ask for alone, by their id: each is a template of its page.
var parts = []string{"live", "preview", "list"}

func newViews(of *assets.Assets, now func() time.Time) (*views, error) {
	functions := template.FuncMap{
		"asset": of.URL, "at": at, "query": with, "nav": nav, "isUnder": isUnder, "outside": outside,
		"cluster": atCluster, "installation": atInstallation, "atInstall": atInstall, "values": atValues,
		"age":   func(since any) string { return age(now(), since) },
		"stamp": stamp, "glyph": glyph, "lower": strings.ToLower, "json": asJSON, "cut": text.Cut, "fields": fields,
		"counted": text.Count,
	}
	layout, err := template.New("layout.html").Funcs(functions).ParseFS(assets.Templates, "templates/layout.html", "templates/pieces.html")
	if err != nil {
		return nil, err
	}
	entries, err := assets.Templates.ReadDir("templates")
	if err != nil {
		return nil, err
	}
	made := &views{map[string]*template.Template{}}
	for _, entry := range entries {
		name := strings.TrimSuffix(entry.Name(), path.Ext(entry.Name()))
		if name == "layout" || name == "pieces" {
			continue
		}
		one, err := layout.Clone()
		if err == nil {
			one, err = one.ParseFS(assets.Templates, "templates/"+entry.Name())
		}
		if err != nil {
			return nil, fmt.Errorf("template %q: %w", name, err)
		}
		made.pages[name] = one
	}
	return made, nil
}

// shown is what the layout gets.
type shown struct {
	Title, Path, Here string
	User              string
	HasLogout         bool
	Stream            string
	Data              any
}

// render writes a page, or only the part of it that a script asks for.
func (s *Site) render(v *visit, made *page) {
	views := s.views.pages[made.template]
	to := shown{Title: made.title, Path: v.URL.Path, Here: v.URL.RequestURI(), Stream: made.stream, Data: made.data}
	if v.user != nil {
		to.User, to.HasLogout = v.user.Name, s.login.Kind != config.LoginProxy
	}
	name, content := s.part(v, made)
	if name == "" {
		name, content = "layout.html", to
	}
	var out bytes.Buffer
	if err := views.ExecuteTemplate(&out, name, content); err != nil {
		s.Logger.Error(err, "a page could not be made", "page", made.template)
		s.plain(v.writer, http.StatusInternalServerError, "Not shown", "This page could not be made. The program's log says why.")
		return
	}
	header := v.writer.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Add("Vary", "HX-Request, Accept-Encoding")
	status := made.status
	if status == 0 {
		status = http.StatusOK
	}
	s.Metrics.answered(made.template, status)
	if strings.Contains(v.Header.Get("Accept-Encoding"), "gzip") && v.Method != http.MethodHead {
		header.Set("Content-Encoding", "gzip")
		v.writer.WriteHeader(status)
		writer := compressors.Get().(*gzip.Writer)
		defer compressors.Put(writer)
		writer.Reset(v.writer)
		_, _ = writer.Write(out.Bytes())
		_ = writer.Close()
		return
	}
	v.writer.WriteHeader(status)
	_, _ = v.writer.Write(out.Bytes())
}

// part is the template of the element that a script asks for, with its data; "" for a whole page.
func (s *Site) part(v *visit, made *page) (name string, data any) {
	target := v.Header.Get("HX-Target")
	switch {
	case v.Header.Get("HX-Request") != "true" || !slices.Contains(parts, target):
		return "", nil
	case made.template == "error":
		return "failed", fields("ID", target, "Problem", made.data)
	case made.template == "login":
		words := "Your login has ended. Reload this page to log in, or send your form, which is kept then."
		return "failed", fields("ID", target, "Problem", problem1("Log in", words))
	case s.views.pages[made.template].Lookup(target) == nil:
		return "", nil
	}
	return target, made.data
}

// compressors are kept, since each has tables of some hundred KiB. Pages have no secrets beside texts of others that an attacker could
// compare by their size: tokens are in cookies only.
var compressors = sync.Pool{New: func() any { writer, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed); return writer }}

// plain writes a short page without the layout, for requests that have no user.
func (s *Site) plain(writer http.ResponseWriter, status int, title, words string) {
	writer.Header().Set("Content-Type", "text/html; charset=utf-8")
	writer.WriteHeader(status)
	fmt.Fprintf(writer, "<!doctype html><html lang=en><meta charset=utf-8><title>%s</title><h1>%[1]s</h1><p>%s</p></html>\n",
		template.HTMLEscapeString(title), template.HTMLEscapeString(words))
}

// problem is a failure, as pages show it in place of what is missing.
type problem struct {
	Title, Text string
	// Since is when a server answered no more; zero: unknown.
	Since time.Time
	// Causes are problems of single fields.
	Causes []upstream.Cause
}

func problem1(title, words string) *problem { return &problem{Title: title, Text: words} }

// changedProblem is shown with both versions of an object.
func changedProblem(what string) *problem {
	return problem1("Changed in the meantime",
		"another client changed the "+what+" since this page was made. Compare both, and save again if yours is right.")
}

// problemOf describes an error; nil for none.
func problemOf(err error) *problem {
	if err == nil {
		return nil
	}
	made := &problem{Title: "Not shown", Text: text.Line(err.Error())}
	if gone, is := errors.AsType[*upstream.UnreachableError](err); is {
		made.Title, made.Since = "No answer", gone.Since
	}
	if refused, is := errors.AsType[*upstream.RefusedError](err); is {
		made.Title, made.Causes = "Refused", refused.Causes
		switch refused.Status {
		case http.StatusForbidden, http.StatusNotFound:
			made.Title = "Not found, or not allowed"
		case http.StatusUnauthorized:
			made.Title = "Login not accepted"
		case http.StatusConflict:
			made.Title = "Changed in the meantime"
		}
	}
	return made
}

// errorPage is the page for an error.
func (s *Site) errorPage(err error) *page {
	made, status := problemOf(err), http.StatusInternalServerError
	var (
		refused *upstream.RefusedError
		gone    *upstream.UnreachableError
		own     *pageError
	)
	switch {
	case errors.As(err, &refused):
		switch status = refused.Status; status {
		case http.StatusForbidden:
			status = http.StatusNotFound
		case http.StatusBadRequest, http.StatusConflict, http.StatusUnauthorized, http.StatusNotFound, http.StatusUnprocessableEntity:
		default:
			status = http.StatusBadGateway
		}
	case errors.As(err, &gone):
		status = http.StatusServiceUnavailable
	case errors.As(err, &own):
		status, made.Title = own.status, own.title
	}
	return &page{template: "error", title: made.Title, status: status, data: made}
}

// timeOf is a time of a template; zero for none.
func timeOf(of any) time.Time {
	switch of := of.(type) {
	case metav1.Time:
		return of.Time
	case *metav1.Time:
		if of != nil {
			return of.Time
		}
	case time.Time:
		return of
	}
	return time.Time{}
}

// age is how long ago something was: "5m".
func age(now time.Time, since any) string {
	if begun := timeOf(since); !begun.IsZero() {
		return view.Age(now.Sub(begun))
	}
	return "–"
}

// stamp is a time for programs and titles; "" for none.
func stamp(of any) string {
	if at := timeOf(of); !at.IsZero() {
		return at.UTC().Format(time.RFC3339)
	}
	return ""
}

// glyph is a state's shape, beside its name and colour.
func glyph(state string) string {
	switch state {
	case "Ready", "Current", "True", "Done", "Complete", "Same":
		return "●"
	case "UnderWay", "Moving", "Open", "Pending", "Change":
		return "◐"
	case "Failing", "Failed", "Halted", "Refused", "Breaks", "Blocked", "Remove":
		return "▲"
	case "Behind", "Waiting", "AwaitingApproval":
		return "○"
	case "Create":
		return "✚"
	}
	return "◇"
}

// asJSON is a value on one line, for people.
func asJSON(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(encoded)
}

// nav are the pages that all others have links to.
func nav() []choice {
	return []choice{
		{"/", "Overview", false}, {"/catalogue", "Catalogue", false}, {"/clusters", "Clusters", false},
		{"/installations", "Installations", false}, {"/sets", "Sets", false}, {"/catalogues", "Catalogues", false},
	}
}

// isUnder says whether a path is that of a page, or of a page below it.
func isUnder(path, page string) bool {
	return path == page || page != "/" && strings.HasPrefix(path, page+"/")
}

// fields are named arguments of a template.
func fields(pairs ...any) map[string]any {
	made := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if name, isName := pairs[i].(string); isName {
			made[name] = pairs[i+1]
		}
	}
	return made
}
