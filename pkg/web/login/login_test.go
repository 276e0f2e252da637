package login_test

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/trellis-addons/trellis/pkg/web/config"
	"github.com/trellis-addons/trellis/pkg/web/login"
	"github.com/trellis-addons/trellis/test/expect"
)

// made is a login of a kind, whose clock a test moves.
func made(t *testing.T, kind, public string, now *time.Time, keys ...string) *login.Login {
	t.Helper()
	of := &config.Loaded{Config: config.Config{Login: config.Login{Kind: kind}}}
	of.Public, _ = url.Parse(public)
	for _, key := range keys {
		of.Keys = append(of.Keys, []byte(strings.Repeat(key, 32)))
	}
	found, err := login.New(of, func() time.Time { return *now })
	expect.NoError(t, err)
	return found
}

// with is a request with the cookies of an answer.
func with(answer *httptest.ResponseRecorder) *http.Request {
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, one := range answer.Result().Cookies() {
		if one.MaxAge >= 0 {
			request.AddCookie(one)
		}
	}
	return request
}

// Red when a session is lost, lasts too long, opens with another key, or its cookies are readable or sent elsewhere.
func TestASessionIsInSealedCookies(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	const public = "https://addons.example.com"
	one := made(t, config.LoginToken, public, &now, "a", "b")
	token := strings.Repeat("canary", 1200) // in three parts
	answer := httptest.NewRecorder()
	if !one.Begin(answer, token, "alice") {
		t.Fatal("the token does not fit")
	}
	for _, cookie := range answer.Result().Cookies() {
		if !strings.HasPrefix(cookie.Name, "__Host-") || !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteLaxMode ||
			strings.Contains(cookie.Value, "canary") || len(cookie.String()) > 4096 {
			t.Errorf("cookie %q", cookie.Name)
		}
	}
	request := with(answer)
	for why, other := range map[string]*login.Login{
		"the same": one, "a new first key": made(t, config.LoginToken, public, &now, "c", "a"),
	} {
		if got := other.Session(httptest.NewRecorder(), request); got == nil || got.Token != token || got.Name != "alice" {
			t.Errorf("%s: %+v", why, got)
		}
	}
	if made(t, config.LoginToken, public, &now, "b").Session(httptest.NewRecorder(), request) != nil {
		t.Error("another key opens it")
	}
	broken := with(answer)
	broken.Header.Set("Cookie", strings.Replace(broken.Header.Get("Cookie"), "trellis-0=", "trellis-0=x", 1))
	if one.Session(httptest.NewRecorder(), broken) != nil {
		t.Error("a changed cookie is accepted")
	}
	now = now.Add(8*time.Hour + time.Second)
	if one.Session(httptest.NewRecorder(), request) != nil {
		t.Error("it lasts longer than 8 hours")
	}
	if one.Begin(httptest.NewRecorder(), strings.Repeat("x", 30_000), "alice") {
		t.Error("a token is cut")
	}
}

// Red when a sealed text opens for another purpose, or after its time.
func TestSealedTextsHaveAPurpose(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	one := made(t, config.LoginToken, "http://localhost", &now, "a").Sealer
	text, err := one.Seal("form /a", "value", now.Add(time.Hour))
	expect.NoError(t, err)
	var got string
	if one.Open("form /a", text, &got) != nil || got != "value" {
		t.Error("it does not open")
	}
	if one.Open("form /b", text, &got) == nil || one.Open("form /a", text[1:], &got) == nil || one.Open("form /a", "", &got) == nil {
		t.Error("it opens for another purpose")
	}
	now = now.Add(time.Hour)
	if one.Open("form /a", text, &got) == nil {
		t.Error("it opens too late")
	}
}

// Red when a redirect leaves this origin.
func TestRedirectsStayHere(t *testing.T) {
	for path, want := range map[string]string{
		"/clusters?a=b": "/clusters?a=b", "": "/", "//evil.example": "/", "https://evil.example": "/", `/\evil.example`: "/",
		"/\t/evil.example": "/", "/" + strings.Repeat("a", 3000): "/", "javascript:alert(1)": "/", "relative": "/", "/a\r\nSet-Cookie: x": "/",
	} {
		if got := login.Local(path); got != want {
			t.Errorf("%q leads to %q", path, got)
		}
	}
}

// Red when the proxy's token is not taken, or a text that is no token is.
func TestTheProxySendsTheToken(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	one := made(t, config.LoginProxy, "https://addons.example.com", &now, "a")
	for header, want := range map[string]string{"Bearer abc": "abc", "bearer a.b.c": "a.b.c", "": "", "Basic abc": "", "Bearer a b": "", "Bearer ": ""} {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.Header.Set("Authorization", header)
		got := one.Session(httptest.NewRecorder(), request)
		if got == nil && want != "" || got != nil && got.Token != want {
			t.Errorf("%q: %+v", header, got)
		}
	}
}

// Red when a login with a long ID token, or one that is renewed, lasts longer than 8 hours.
func TestALoginEndsAfterEightHours(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	one := made(t, config.LoginToken, "https://addons.example.com", &now, "a")
	claims := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, now.Add(24*time.Hour).Unix()))
	answer := httptest.NewRecorder()
	if !one.Begin(answer, "a."+claims+".c", "alice") {
		t.Fatal("no login")
	}
	if got := one.Session(httptest.NewRecorder(), with(answer)); got == nil || got.Until.Sub(now) != 8*time.Hour {
		t.Errorf("the login is %+v", got)
	}
	now = now.Add(8 * time.Hour)
	if one.Session(httptest.NewRecorder(), with(answer)) != nil {
		t.Error("it lasts longer")
	}
}

// Red when each login waits for a provider that is silent, one after the other.
func TestASilentProviderDelaysNobodyTwice(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	defer listener.Close()
	of := &config.Loaded{Keys: [][]byte{[]byte(strings.Repeat("k", 32))}}
	of.Public, _ = url.Parse("https://addons.example.com")
	of.Login = config.Login{Kind: config.LoginOIDC, OIDC: &config.OIDC{Issuer: "https://" + listener.Addr().String(), ClientID: "web"}}
	one, err := login.New(of, time.Now)
	expect.NoError(t, err)
	begun := time.Now()
	for range 4 {
		if _, err := one.Start(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/login/start", nil), "/"); err == nil {
			t.Fatal("a login begins")
		}
	}
	if one.End(httptest.NewRecorder()) != "" || time.Since(begun) > 9*time.Second {
		t.Errorf("it takes %s", time.Since(begun))
	}
}
