package login_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trellis-addons/trellis/pkg/web/config"
	"github.com/trellis-addons/trellis/pkg/web/login"
	"github.com/trellis-addons/trellis/test/expect"
)

// issuer is an OIDC provider in this process, which can be hostile.
type issuer struct {
	t    *testing.T
	url  string
	ca   string
	key  *rsa.PrivateKey
	next map[string]any
	// refuses makes the token endpoint refuse, and asked has what it was sent.
	refuses bool
	mutex   sync.Mutex
	asked   []url.Values
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	expect.NoError(t, err)
	made := &issuer{t: t, key: key}
	server := httptest.NewTLSServer(made)
	t.Cleanup(server.Close)
	made.url, made.ca = server.URL, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	return made
}

func (i *issuer) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	writer.Header().Set("Content-Type", "application/json")
	var answer any
	switch request.URL.Path {
	case "/.well-known/openid-configuration":
		answer = map[string]any{
			"issuer": i.url, "authorization_endpoint": i.url + "/auth", "token_endpoint": i.url + "/token", "jwks_uri": i.url + "/keys",
			"end_session_endpoint": i.url + "/end", "id_token_signing_alg_values_supported": []string{"RS256"},
		}
	case "/keys":
		answer = map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "kid": "a", "alg": "RS256", "use": "sig", "e": "AQAB", "n": base64.RawURLEncoding.EncodeToString(i.key.N.Bytes()),
		}}}
	case "/token":
		_ = request.ParseForm()
		i.mutex.Lock()
		defer i.mutex.Unlock()
		i.asked = append(i.asked, request.PostForm)
		if answer = i.next; i.refuses {
			writer.WriteHeader(http.StatusBadRequest)
			answer = map[string]any{"error": "invalid_grant", "error_description": "canary"}
		}
	}
	_ = json.NewEncoder(writer).Encode(answer)
}

// token signs claims.
func (i *issuer) token(key *rsa.PrivateKey, claims map[string]any) string {
	i.t.Helper()
	payload, err := json.Marshal(claims)
	expect.NoError(i.t, err)
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","kid":"a"}`)) + "." + base64.RawURLEncoding.EncodeToString(payload)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	expect.NoError(i.t, err)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// login is one with this issuer.
func (i *issuer) login(now func() time.Time) *login.Login {
	i.t.Helper()
	of := &config.Loaded{Keys: [][]byte{[]byte(strings.Repeat("k", 32))}, Secret: "secret"}
	of.Public, _ = url.Parse("https://addons.example.com")
	of.Login = config.Login{Kind: config.LoginOIDC, OIDC: &config.OIDC{Issuer: i.url, ClientID: "web", CA: i.ca}}
	made, err := login.New(of, now)
	expect.NoError(i.t, err)
	return made
}

// Red when a login is accepted that was not begun in this browser, or whose ID token is of another issuer, client, login or key, or too
// old; when a refusal has what the provider sent; or when a login leads to another site.
func TestLoginsByAProvider(t *testing.T) {
	i := newIssuer(t)
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	expect.NoError(t, err)
	one := i.login(time.Now)
	for why, test := range map[string]struct {
		// change changes the claims, the answer of the provider, or the request that comes back.
		claims  map[string]any
		key     *rsa.PrivateKey
		answer  map[string]any
		refuses bool
		query   url.Values
		without bool
		says    string
	}{
		"right":                     {},
		"of another issuer":         {claims: map[string]any{"iss": "https://evil.example"}, says: "not valid"},
		"for another client":        {claims: map[string]any{"aud": "other"}, says: "not valid"},
		"too old":                   {claims: map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}, says: "not valid"},
		"of another login":          {claims: map[string]any{"nonce": "other"}, says: "another login"},
		"without a nonce":           {claims: map[string]any{"nonce": ""}, says: "another login"},
		"of another key":            {key: stranger, says: "not valid"},
		"without a signature":       {answer: map[string]any{"id_token": "e30.e30."}, says: "not valid"},
		"no ID token":               {answer: map[string]any{"id_token": ""}, says: "no ID token"},
		"an ID token that is a map": {answer: map[string]any{"id_token": map[string]any{}}, says: "no ID token"},
		"too large":                 {claims: map[string]any{"groups": strings.Repeat("a", 9<<10)}, says: "too large"},
		"refused":                   {refuses: true, says: "does not accept the code"},
		"of another state":          {query: url.Values{"state": {"other"}}, says: "not begun in this browser"},
		"without a state":           {query: url.Values{"state": {""}}, says: "not begun in this browser"},
		"of another browser":        {without: true, says: "not begun in this browser"},
		"an error":                  {query: url.Values{"error": {"access_denied"}}, says: "access_denied"},
	} {
		t.Run(why, func(t *testing.T) {
			started := httptest.NewRecorder()
			to, err := one.Start(started, httptest.NewRequest(http.MethodGet, "/login/start", nil), "//evil.example")
			expect.NoError(t, err)
			asked, err := url.Parse(to)
			expect.NoError(t, err)
			flow := asked.Query()
			if !strings.HasPrefix(to, i.url+"/auth?") || flow.Get("code_challenge_method") != "S256" || flow.Get("code_challenge") == "" ||
				flow.Get("redirect_uri") != "https://addons.example.com/login/callback" || strings.Contains(to, "secret") {
				t.Errorf("the login begins at %s", to)
			}
			claims := map[string]any{
				"iss": i.url, "aud": "web", "sub": "1", "email": "alice@example.com", "exp": time.Now().Add(time.Hour).Unix(),
				"nonce": flow.Get("nonce"),
			}
			maps.Copy(claims, test.claims)
			key := i.key
			if test.key != nil {
				key = test.key
			}
			i.next = map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": i.token(key, claims)}
			maps.Copy(i.next, test.answer)
			i.refuses = test.refuses
			back := url.Values{"state": {flow.Get("state")}, "code": {"code"}}
			maps.Copy(back, test.query)
			request := with(started)
			request.URL.RawQuery = back.Encode()
			if test.without {
				request.Header.Del("Cookie")
			}
			answer := httptest.NewRecorder()
			at, err := one.Finish(answer, request)
			session := one.Session(httptest.NewRecorder(), with(answer))
			switch {
			case test.says == "" && (err != nil || at != "/" || session == nil || session.Name != "alice@example.com"):
				t.Errorf("the login leads to %q as %+v: %v", at, session, err)
			case test.says != "" && (err == nil || session != nil || !strings.Contains(err.Error(), test.says) ||
				strings.Contains(err.Error(), "canary")):
				t.Errorf("it is accepted as %+v, or its refusal is %v, want %q", session, err, test.says)
			}
		})
	}
	if got := one.End(httptest.NewRecorder()); !strings.HasPrefix(got, i.url+"/end?client_id=web") {
		t.Errorf("the logout leads to %q", got)
	}
}

// Red when a login ends although it can be renewed, is renewed with a token of another kind, or is renewed for longer than 8 hours.
func TestLoginsAreRenewed(t *testing.T) {
	i := newIssuer(t)
	now := time.Now()
	one := i.login(func() time.Time { return now })
	started := httptest.NewRecorder()
	to, err := one.Start(started, httptest.NewRequest(http.MethodGet, "/login/start", nil), "/sets")
	expect.NoError(t, err)
	asked, err := url.Parse(to)
	expect.NoError(t, err)
	answers := func(subject, aud string, until time.Time) {
		i.next = map[string]any{"access_token": "a", "token_type": "Bearer", "refresh_token": "again", "id_token": i.token(i.key, map[string]any{
			"iss": i.url, "aud": aud, "sub": subject, "exp": until.Unix(), "nonce": asked.Query().Get("nonce"),
		})}
	}
	begun := now
	answers("first", "web", now.Add(time.Hour))
	request, answer := with(started), httptest.NewRecorder()
	request.URL.RawQuery = url.Values{"state": {asked.Query().Get("state")}, "code": {"code"}}.Encode()
	if at, err := one.Finish(answer, request); err != nil || at != "/sets" {
		t.Fatalf("the login leads to %q: %v", at, err)
	}
	now = begun.Add(time.Hour - 30*time.Second)
	answers("other", "another-client", now.Add(time.Hour))
	if got := one.Session(httptest.NewRecorder(), with(answer)); got == nil || got.Name != "first" {
		t.Errorf("a token for another client: %+v", got)
	}
	for hour := range 9 {
		now = begun.Add(time.Duration(hour+1)*time.Hour - 30*time.Second)
		answers(fmt.Sprint("hour ", hour), "web", now.Add(time.Hour+30*time.Second))
		renewed := httptest.NewRecorder()
		got := one.Session(renewed, with(answer))
		if (got != nil) != (hour < 8) || got != nil && hour < 7 && got.Name != fmt.Sprint("hour ", hour) {
			t.Fatalf("after %d hours: %+v", hour, got)
		}
		if len(renewed.Result().Cookies()) > 0 {
			answer = renewed
		}
	}
	if last := i.asked[len(i.asked)-1]; last.Get("grant_type") != "refresh_token" || last.Get("refresh_token") != "again" {
		t.Errorf("the provider is asked %v", last)
	}
}
