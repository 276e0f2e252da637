// Package pages makes the pages of the web view. It has no rights and no state of its own: each page is made of answers
// that query endpoints and API servers give to the token of the user, and each action is one write with it.
//
// The way of a request:
//
//	guard.go      the host, headers, cross-site requests, the size of forms
//	site.go       the routes; who is logged in; the page for an error
//	render.go     templates: a whole page, or the part that a script replaces
//	links.go      addresses of pages
//	events.go     one stream of changes a page
//
// Each page is in the file of its name. A page for several seeds shows a problem of one seed in the place of its rows.
package pages

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/go-logr/logr"

	"github.com/trellis-addons/trellis/pkg/base/lru"
	"github.com/trellis-addons/trellis/pkg/web/assets"
	"github.com/trellis-addons/trellis/pkg/web/config"
	"github.com/trellis-addons/trellis/pkg/web/login"
	"github.com/trellis-addons/trellis/pkg/web/upstream"
)

// MostForm is how many bytes a form has.
const MostForm = 320 << 10

// Options are what sites share that follow each other when the configuration changes.
type Options struct {
	Logger  logr.Logger
	Metrics *Metrics
	// Streams bounds the streams of all sites.
	Streams *Streams
	// Ending is closed when the program ends: streams end too.
	Ending <-chan struct{}
	Now    func() time.Time
}

// Site is the web view of one configuration.
type Site struct {
	Options
	public   *url.URL
	login    *login.Login
	platform *upstream.Platform
	assets   *assets.Assets
	views    *views
	names    *lru.Cache[string, string]
	handler  http.Handler
	// closed ends the streams of this configuration.
	closed chan struct{}
}

// New makes the site of a configuration.
func New(of *config.Loaded, options Options) (*Site, error) {
	made := &Site{Options: options, public: of.Public, closed: make(chan struct{}), names: lru.New[string, string](10_000, options.Now)}
	var errs [4]error
	made.login, errs[0] = login.New(of, options.Now)
	made.platform, errs[1] = upstream.New(&of.Config, upstream.Options{Now: options.Now, Count: options.Metrics.called})
	made.assets, errs[2] = assets.New()
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	if made.views, errs[3] = newViews(made.assets, options.Now); errs[3] != nil {
		return nil, errs[3]
	}
	var err error
	made.handler, err = made.guard(made.routes())
	return made, err
}

// Close ends streams, and connections that no request uses.
func (s *Site) Close() {
	close(s.closed)
	s.platform.Close()
}

// ServeHTTP serves a request.
func (s *Site) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	s.handler.ServeHTTP(writer, request)
}

func (s *Site) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET "+assets.Prefix, s.assets)
	mux.HandleFunc("GET /login", s.loginPage)
	mux.HandleFunc("POST /login", s.loginByToken)
	if s.login.Kind == config.LoginOIDC {
		mux.HandleFunc("GET /login/start", s.loginStart)
		mux.HandleFunc("GET "+login.Callback, s.loginFinish)
	}
	mux.HandleFunc("POST /logout", s.logout)
	mux.HandleFunc("GET /events", s.events)
	for pattern, maker := range map[string]maker{
		"GET /{$}":                                   s.overview,
		"GET /catalogue":                             s.catalogue,
		"GET /catalogue/{addon}":                     s.addon,
		"GET /clusters":                              s.clusters,
		"GET /clusters/{seed}/{namespace}":           s.clusters,
		"GET /clusters/{seed}/{namespace}/{cluster}": s.cluster,
		"GET /clusters/{seed}/{namespace}/{cluster}/install/{addon}":  s.install,
		"POST /clusters/{seed}/{namespace}/{cluster}/install/{addon}": s.install,
		"GET /clusters/{seed}/{namespace}/installations/{name}":       s.installation,
		"POST /clusters/{seed}/{namespace}/installations/{name}":      s.act,
		"GET /clusters/{seed}/{namespace}/values/{name}":              s.edit,
		"POST /clusters/{seed}/{namespace}/values/{name}":             s.edit,
		"GET /installations":      s.installations,
		"POST /installations":     s.actOnMany,
		"GET /sets":               s.sets,
		"GET /sets/{name}":        s.set,
		"POST /sets/{name}":       s.actOnSet,
		"GET /catalogues":         s.catalogues,
		"GET /catalogues/{name}":  s.editCatalogue,
		"POST /catalogues/{name}": s.editCatalogue,
		"/":                       notThere,
	} {
		mux.HandleFunc(pattern, s.page(maker))
	}
	return mux
}

// visit is a request of a logged-in user.
type visit struct {
	*http.Request
	site   *Site
	writer http.ResponseWriter
	user   *login.Session
	// form has the parameters of a GET, or the sent form.
	form url.Values
}

func (v *visit) token() string { return v.user.Token }

// page is what a template shows.
type page struct {
	// template is the name of its file, title that of the browser's window.
	template, title string
	// status is 200 by default.
	status int
	// stream is the path of the page's stream; "": it has none.
	stream string
	data   any
	// to is where a browser goes instead of showing a page.
	to string
}

// maker makes a page. Its error is shown as a page.
type maker func(*visit) (*page, error)

// pageError is an error of this program with the status and the title of its page.
type pageError struct {
	status        int
	title, reason string
}

func (e *pageError) Error() string { return e.reason }

// missing says that a page, or an object on it, does not exist.
func missing(what string) error { return &pageError{http.StatusNotFound, "Not found", what} }

// wrong says what is wrong with a form or an address.
func wrong(what string) error { return &pageError{http.StatusBadRequest, "Not accepted", what} }

// changed says that an object is no longer as the page showed it.
func changed(name string) error {
	return &pageError{http.StatusConflict, "Changed in the meantime",
		"another client changed " + name + " in the meantime: check it again, and repeat the action if it is still right"}
}

func notThere(*visit) (*page, error) { return nil, missing("there is no such page") }

// page serves a page to users who are logged in.
func (s *Site) page(made maker) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		visit := &visit{Request: request, site: s, writer: writer, user: s.login.Session(writer, request)}
		if !s.readForm(visit) {
			return
		}
		if visit.user == nil {
			s.askToLogIn(visit)
			return
		}
		shown, err := made(visit)
		switch {
		case upstream.Is(err, http.StatusUnauthorized):
			s.askToLogIn(visit)
		case err != nil:
			s.render(visit, s.errorPage(err))
		case shown.to != "":
			http.Redirect(writer, request, shown.to, http.StatusSeeOther)
		default:
			s.render(visit, shown)
		}
	}
}

// readForm reads parameters within limits. It answers, and is false, if there are too many.
func (s *Site) readForm(v *visit) bool {
	v.form = v.URL.Query()
	if v.Method != http.MethodPost {
		return true
	}
	limit, isKept := int64(MostForm), v.form.Has("kept")
	if isKept {
		limit *= 3 // sealed text is longer than the form
	}
	v.Body = http.MaxBytesReader(v.writer, v.Body, limit)
	if err := v.ParseForm(); err != nil {
		status, problem := http.StatusBadRequest, "the form can't be read"
		if _, isLarge := errors.AsType[*http.MaxBytesError](err); isLarge {
			status, problem = http.StatusRequestEntityTooLarge, "the form has more than 320 KiB"
		}
		s.render(v, &page{template: "error", title: "Not accepted", status: status, data: problem1("This form is not accepted", problem)})
		return false
	}
	v.form = v.PostForm
	if isKept {
		var kept url.Values
		if err := s.login.Sealer.Open(login.ForForm+v.URL.Path, v.form.Get("sealed"), &kept); err != nil {
			problem := problem1("This form is not accepted", "it is older than an hour, or belongs to another page: fill it in again")
			s.render(v, &page{template: "error", title: "Not accepted", status: http.StatusBadRequest, data: problem})
			return false
		}
		v.form = kept
	}
	return true
}
