package pages

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	"github.com/trellis-addons/trellis/pkg/web/config"
	"github.com/trellis-addons/trellis/pkg/web/login"
	"github.com/trellis-addons/trellis/pkg/web/upstream"
)

// keptTime is how long a form waits for a login.
const keptTime = time.Hour

// loginView is the page that asks for a login.
type loginView struct {
	Kind, To, Problem string
	// Sealed is the form that a POST without a login had, Action its path; "": none.
	Sealed, Action string
}

// askToLogIn answers a request without a login: 401, with the sent form kept in the page.
func (s *Site) askToLogIn(v *visit) {
	made := loginView{Kind: s.login.Kind, To: v.URL.RequestURI()}
	if v.Method == http.MethodPost {
		made.To, made.Action = "/", v.URL.Path+"?kept=1"
		sealed, err := s.login.Sealer.Seal(login.ForForm+v.URL.Path, v.form, s.Now().Add(keptTime))
		if err == nil {
			made.Sealed = sealed
		}
	}
	v.user = nil
	s.render(v, &page{template: "login", title: "Log in", status: http.StatusUnauthorized, data: made})
}

func (s *Site) loginPage(writer http.ResponseWriter, request *http.Request) {
	visit := &visit{Request: request, site: s, writer: writer}
	s.render(visit, &page{template: "login", title: "Log in", data: loginView{Kind: s.login.Kind, To: login.Local(request.FormValue("to"))}})
}

// loginByToken begins a session with a token that was entered.
func (s *Site) loginByToken(writer http.ResponseWriter, request *http.Request) {
	visit := &visit{Request: request, site: s, writer: writer}
	if !s.readForm(visit) {
		return
	}
	to := login.Local(visit.form.Get("to"))
	refuse := func(problem string) {
		made := loginView{Kind: s.login.Kind, To: to, Problem: problem}
		s.render(visit, &page{template: "login", title: "Log in", status: http.StatusUnauthorized, data: made})
	}
	token := strings.TrimSpace(visit.form.Get("token"))
	switch {
	case s.login.Kind != config.LoginToken:
		refuse("This site does not accept tokens.")
		return
	case !login.IsToken(token):
		refuse("This is not a token: it is empty or too long, or has spaces.")
		return
	}
	name, err := s.whoIs(request.Context(), token)
	if err != nil {
		refuse(problemOf(err).Text)
		return
	}
	if !s.login.Begin(writer, token, name) {
		refuse("The token is too long for cookies.")
		return
	}
	http.Redirect(writer, request, to, http.StatusSeeOther)
}

// whoIs asks all servers for the name of a token's user. The first that knows the token counts. If none does, the error is a refusal,
// or that of a server that did not answer.
func (s *Site) whoIs(ctx context.Context, token string) (string, error) {
	sum := sha256.Sum256([]byte(token))
	key := string(sum[:])
	if name, isKnown := s.names.Get(key); isKnown {
		return name, nil
	}
	var last error
	answers := upstream.Each(ctx, s.platform.Seeds, func(ctx context.Context, seed *upstream.Seed) (string, error) {
		return seed.API.WhoAmI(ctx, token)
	})
	if s.platform.Master != nil {
		name, err := s.platform.Master.WhoAmI(ctx, token)
		answers = append(answers, upstream.Of[string]{Answer: name, Err: err})
	}
	for _, one := range answers {
		if one.Err == nil {
			s.names.Put(key, one.Answer, keptTime)
			return one.Answer, nil
		}
		if last == nil || upstream.Is(last, http.StatusUnauthorized) {
			last = one.Err
		}
	}
	return "", last
}

func (s *Site) loginStart(writer http.ResponseWriter, request *http.Request) {
	visit := &visit{Request: request, site: s, writer: writer}
	to, err := s.login.Start(writer, request, request.FormValue("to"))
	if err != nil {
		s.Logger.Error(err, "a login could not begin")
		problem := problem1("No answer", "The login provider does not answer. Try again later.")
		s.render(visit, &page{template: "error", title: problem.Title, status: http.StatusServiceUnavailable, data: problem})
		return
	}
	http.Redirect(writer, request, to, http.StatusSeeOther)
}

func (s *Site) loginFinish(writer http.ResponseWriter, request *http.Request) {
	visit := &visit{Request: request, site: s, writer: writer}
	to, err := s.login.Finish(writer, request)
	if err != nil {
		made := loginView{Kind: s.login.Kind, To: "/", Problem: problemOf(err).Text}
		s.render(visit, &page{template: "login", title: "Log in", status: http.StatusUnauthorized, data: made})
		return
	}
	http.Redirect(writer, request, to, http.StatusSeeOther)
}

func (s *Site) logout(writer http.ResponseWriter, request *http.Request) {
	to := s.login.End(writer)
	if to == "" {
		http.Redirect(writer, request, "/login", http.StatusSeeOther)
		return
	}
	// A link and no redirect: the policy of pages lets forms lead to this origin only.
	s.render(&visit{Request: request, site: s, writer: writer}, &page{template: "loggedout", title: "Logged out", data: to})
}
