package login

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/trellis-addons/trellis/pkg/web/config"
)

const (
	// stateTime is how long a login at the provider may take.
	stateTime = 10 * time.Minute
	// providerTime limits a call to the provider.
	providerTime = 5 * time.Second
	// Callback is the path that the provider returns to.
	Callback = "/login/callback"
)

var (
	errState    = errors.New("this login was not begun in this browser, or more than 10 minutes ago")
	errNoToken  = errors.New("the provider sent no ID token")
	errNonce    = errors.New("the ID token belongs to another login")
	errTooLarge = errors.New("the ID token is too large for cookies: have the provider send fewer groups")
)

// OIDC is the code flow with PKCE at a provider.
type OIDC struct {
	issuer, logout string
	config         oauth2.Config
	client         *http.Client

	mutex    sync.Mutex
	provider *oidc.Provider
	// failed is why the last discovery failed: it is not tried before again.
	failed error
	again  time.Time
}

// state is kept in a cookie while the user is at the provider.
type state struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
	// To is the path that the user came from.
	To string `json:"to"`
}

func newOIDC(of *config.Loaded) (*OIDC, error) {
	settings := of.Login.OIDC
	pool, err := config.Pool("login.oidc.ca", settings.CA)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, IdleConnTimeout: time.Minute}
	return &OIDC{
		issuer: settings.Issuer, logout: of.Public.String(),
		client: &http.Client{Transport: transport, Timeout: providerTime},
		config: oauth2.Config{
			ClientID: settings.ClientID, ClientSecret: of.Secret, RedirectURL: of.Public.JoinPath(Callback).String(),
			Scopes: append([]string{oidc.ScopeOpenID, oidc.ScopeOfflineAccess}, settings.Scopes...),
		},
	}, nil
}

// discover reads the provider's document once. An error is kept for some seconds, since others wait while the provider is silent.
func (o *OIDC) discover(ctx context.Context) (*oidc.Provider, oauth2.Config, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.provider == nil && time.Now().Before(o.again) {
		return nil, o.config, o.failed
	}
	if o.provider == nil {
		// The provider's keys are read later with this context's client, so that it must not end with the request.
		found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), o.client), o.issuer)
		if err != nil {
			o.failed, o.again = err, time.Now().Add(providerTime)
			return nil, o.config, err
		}
		o.provider = found
	}
	flow := o.config
	flow.Endpoint = o.provider.Endpoint()
	return o.provider, flow, nil
}

// endURL is where the provider ends its own session; "": nowhere.
func (o *OIDC) endURL() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	var offered struct {
		End string `json:"end_session_endpoint"`
	}
	if o.provider == nil || o.provider.Claims(&offered) != nil {
		return ""
	}
	parsed, err := url.Parse(offered.End)
	if err != nil || parsed.Scheme != "https" {
		return ""
	}
	query := parsed.Query()
	query.Set("client_id", o.config.ClientID)
	query.Set("post_logout_redirect_uri", o.logout)
	parsed.RawQuery = query.Encode()
	return parsed.String()
}

// Start returns the provider's URL to redirect to, and keeps the login's state in a cookie.
func (l *Login) Start(writer http.ResponseWriter, request *http.Request, to string) (string, error) {
	_, flow, err := l.oidc.discover(request.Context())
	if err != nil {
		return "", err
	}
	kept := state{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), To: Local(to)}
	until := l.now().Add(stateTime)
	text, err := l.Sealer.Seal(forOIDC, kept, until)
	if err != nil || !l.states.fits(text) {
		return "", cmp.Or(err, errState)
	}
	l.states.write(writer, text, until)
	return flow.AuthCodeURL(kept.State, oidc.Nonce(kept.Nonce), oauth2.S256ChallengeOption(kept.Verifier)), nil
}

// Finish exchanges the code of a callback, and begins the session. It returns the path that the user came from.
func (l *Login) Finish(writer http.ResponseWriter, request *http.Request) (to string, err error) {
	var kept state
	if err := l.Sealer.Open(forOIDC, l.states.read(request), &kept); err != nil {
		return "", errState
	}
	l.states.write(writer, "", time.Time{})
	query := request.URL.Query()
	if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(kept.State)) != 1 {
		return "", errState
	}
	if query.Get("error") != "" {
		return "", errors.New("the provider refuses the login: " + query.Get("error"))
	}
	_, flow, err := l.oidc.discover(request.Context())
	if err != nil {
		return "", err
	}
	ctx := oidc.ClientContext(request.Context(), l.oidc.client)
	token, err := flow.Exchange(ctx, query.Get("code"), oauth2.VerifierOption(kept.Verifier))
	if err != nil {
		return "", errors.New("the provider does not accept the code")
	}
	session, err := l.oidc.session(ctx, token, kept.Nonce)
	if err != nil {
		return "", err
	}
	if !l.begin(writer, session) {
		return "", errTooLarge
	}
	return Local(kept.To), nil
}

// session verifies the ID token of an answer: issuer, audience, expiry, signature, and the nonce unless it is "".
func (o *OIDC) session(ctx context.Context, token *oauth2.Token, nonce string) (*Session, error) {
	raw, _ := token.Extra("id_token").(string)
	switch {
	case raw == "":
		return nil, errNoToken
	case !IsToken(raw):
		return nil, errTooLarge
	}
	provider, _, err := o.discover(ctx)
	if err != nil {
		return nil, err
	}
	verified, err := provider.Verifier(&oidc.Config{ClientID: o.config.ClientID}).Verify(ctx, raw)
	if err != nil {
		return nil, errors.New("the ID token is not valid for this client")
	}
	if nonce != "" && subtle.ConstantTimeCompare([]byte(verified.Nonce), []byte(nonce)) != 1 {
		return nil, errNonce
	}
	return &Session{Token: raw, Name: claimsOf(raw).name(), Until: verified.Expiry, Refresh: token.RefreshToken}, nil
}

// renew takes a new ID token by the refresh token.
func (o *OIDC) renew(ctx context.Context, old *Session) (*Session, error) {
	_, flow, err := o.discover(ctx)
	if err != nil {
		return nil, err
	}
	ctx = oidc.ClientContext(ctx, o.client)
	token, err := flow.TokenSource(ctx, &oauth2.Token{RefreshToken: old.Refresh, Expiry: time.Unix(1, 0)}).Token()
	if err != nil {
		return nil, err
	}
	renewed, err := o.session(ctx, token, "")
	if err == nil {
		renewed.Refresh, renewed.Ends = cmp.Or(renewed.Refresh, old.Refresh), old.Ends
	}
	return renewed, err
}
