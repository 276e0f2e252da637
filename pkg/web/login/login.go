// Package login finds out who a request is from. It never decides what a user may do: it keeps the user's token in a
// sealed cookie, and API servers and query endpoints verify it at each call.
//
// There are three kinds: Token, which the user enters once; Proxy, where an authenticating proxy in front sends the token
// with each request; and OIDC, where the ID token of a code flow with PKCE is the token.
package login

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/trellis-addons/trellis/pkg/web/config"
)

const (
	// longest is how long a login lasts.
	longest = 8 * time.Hour
	// mostToken is how many bytes a token has.
	mostToken = 8 << 10
	// mostPath is how many bytes a path has that a login leads back to.
	mostPath = 2 << 10
)

// Session is a logged-in user.
type Session struct {
	// Token is sent to API servers and query endpoints.
	Token string `json:"token"`
	// Name is shown; API servers decide by the token.
	Name string `json:"name"`
	// Until is when the login ends.
	Until time.Time `json:"until"`
	// Ends is when it is renewed no more.
	Ends time.Time `json:"ends"`
	// Refresh renews the token; empty: it is not renewed.
	Refresh string `json:"refresh,omitempty"`
}

// Login reads and writes sessions of one kind.
type Login struct {
	Kind string
	// Sealer also seals forms that wait for a login.
	Sealer   *Sealer
	oidc     *OIDC
	sessions cookies
	states   cookies
	now      func() time.Time
}

// New makes the login of a configuration. OIDC asks the issuer later.
func New(of *config.Loaded, now func() time.Time) (*Login, error) {
	sealer, err := NewSealer(of.Keys, now)
	if err != nil {
		return nil, err
	}
	isSecure := of.Public.Scheme == "https"
	made := &Login{
		Kind: of.Login.Kind, Sealer: sealer, now: now,
		sessions: newCookies("trellis", isSecure), states: newCookies("trellis-login", isSecure),
	}
	if of.Login.OIDC != nil {
		made.oidc, err = newOIDC(of)
	}
	return made, err
}

// Session is that of a request; nil: nobody is logged in. A token that is about to expire is renewed if it can be, in a cookie of the
// answer.
func (l *Login) Session(writer http.ResponseWriter, request *http.Request) *Session {
	if l.Kind == config.LoginProxy {
		scheme, token, _ := strings.Cut(request.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || !IsToken(token) {
			return nil
		}
		return &Session{Token: token, Name: claimsOf(token).name(), Until: l.now().Add(longest)}
	}
	text, found := l.sessions.read(request), &Session{}
	if text == "" || l.Sealer.Open(forSession, text, found) != nil {
		return nil
	}
	if l.oidc != nil && found.Refresh != "" && found.Until.Sub(l.now()) < time.Minute && found.Until.Before(found.Ends) &&
		request.Header.Get("Accept") != "text/event-stream" {
		if renewed, err := l.oidc.renew(request.Context(), found); err == nil && l.begin(writer, renewed) {
			return renewed
		}
	}
	if !l.now().Before(found.Until) {
		return nil
	}
	return found
}

// Begin starts the session of a token that was entered. It is false if the token is too long for cookies.
func (l *Login) Begin(writer http.ResponseWriter, token, name string) bool {
	until := l.now().Add(longest)
	if expires := claimsOf(token).Expires; expires > 0 {
		until = time.Unix(expires, 0)
	}
	return l.begin(writer, &Session{Token: token, Name: name, Until: until})
}

func (l *Login) begin(writer http.ResponseWriter, session *Session) bool {
	if session.Ends.IsZero() {
		session.Ends = l.now().Add(longest)
	}
	if session.Until.After(session.Ends) {
		session.Until = session.Ends
	}
	until := session.Until
	if session.Refresh != "" {
		until = session.Ends
	}
	text, err := l.Sealer.Seal(forSession, session, until)
	if err != nil || !l.sessions.fits(text) {
		return false
	}
	l.sessions.write(writer, text, until)
	return true
}

// End ends the session of a browser, and returns where the provider ends its own; "": nowhere.
func (l *Login) End(writer http.ResponseWriter) string {
	l.sessions.write(writer, "", time.Time{})
	l.states.write(writer, "", time.Time{})
	if l.oidc == nil {
		return ""
	}
	return l.oidc.endURL()
}

// IsToken says whether a text may be a bearer token: printable, without spaces, of limited size.
func IsToken(text string) bool {
	if text == "" || len(text) > mostToken {
		return false
	}
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// Local is a path of this origin, or "/" for anything else. Browsers read a backslash as a slash, and "//host" as another host.
func Local(path string) string {
	parsed, err := url.Parse(path)
	if err != nil || parsed.Scheme != "" || parsed.Host != "" || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") ||
		strings.ContainsAny(path, "\\\r\n\t") || len(path) > mostPath {
		return "/"
	}
	return path
}

// claims are those of a token that are shown or used for the length of a login. They are not verified here.
type claims struct {
	Expires   int64  `json:"exp"`
	Email     string `json:"email"`
	Preferred string `json:"preferred_username"`
	Subject   string `json:"sub"`
}

func claimsOf(token string) (found claims) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return found
	}
	if decoded, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
		_ = json.Unmarshal(decoded, &found)
	}
	return found
}

func (c claims) name() string {
	return cmp.Or(c.Email, c.Preferred, c.Subject, "user of the proxy")
}
