package config_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trellis-addons/trellis/pkg/web/config"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

const valid = `
publicURL: https://addons.example.com
keysFolder: KEYS
seeds:
- {name: one, server: "https://one.example.com:6443", query: "https://one.example.com/query"}
- {name: two, server: "https://two.example.com:6443", query: "https://two.example.com/query"}
login: {kind: Token}
`

// folder has a valid configuration and a key.
func folder(t *testing.T) (name, keys string) {
	t.Helper()
	keys = t.TempDir()
	name = filepath.Join(t.TempDir(), "config.yaml")
	expect.NoError(t, os.WriteFile(filepath.Join(keys, "b"), []byte(strings.Repeat("b", 32)), 0o600))
	write(t, name, keys, valid)
	return name, keys
}

func write(t *testing.T, name, keys, text string) {
	t.Helper()
	// It replaces the file, since a follower may be reading it.
	next := filepath.Join(t.TempDir(), "next.yaml")
	expect.NoError(t, os.WriteFile(next, []byte(strings.ReplaceAll(text, "KEYS", keys)), 0o600))
	expect.NoError(t, os.Rename(next, name))
}

// Red when a bad configuration is accepted, or its refusal does not name the place.
func TestBadConfigurationsAreRefused(t *testing.T) {
	name, keys := folder(t)
	if _, err := config.Load(name); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ why, before, after, says string }{
		{"an unknown field", "login:", "colour: red\nlogin:", "colour"},
		{"a field in other letters", "publicURL:", "publicurl:", "publicurl"},
		{"a key twice", "login:", "keysFolder: /x\nlogin:", "keysFolder"},
		{"a seed twice", "name: two", "name: one", `seed "one" is in the list twice`},
		{"a seed without a name", "name: two", `name: ""`, "seeds[1].name"},
		{"a seed by http", "https://two.example.com:6443", "http://two.example.com:6443", "seeds[1].server"},
		{"a query endpoint by http", "https://two.example.com/query", "http://two.example.com/query", "seeds[1].query"},
		{"a user in a URL", "https://two.example.com/query", "https://a:b@two.example.com/query", "seeds[1].query"},
		{"a wrong authority", "{name: two,", `{name: two, ca: "no", `, "seeds[1].ca"},
		{"http for others", "https://addons", "http://addons", "publicURL"},
		{"a path", "addons.example.com", "addons.example.com/x", "publicURL"},
		{"no login", "{kind: Token}", "{kind: None}", "login.kind"},
		{"a provider that is missing", "{kind: Token}", "{kind: OIDC}", "login.oidc"},
		{"a provider that is not used", "{kind: Token}", `{kind: Token, oidc: {issuer: "https://a", clientID: b}}`, "login.oidc"},
		{"an issuer by http", "{kind: Token}", `{kind: OIDC, oidc: {issuer: "http://a", clientID: b}}`, "login.oidc.issuer"},
		{"no keys", "keysFolder: KEYS", "keysFolder: /nowhere", "keysFolder"},
		{"no seeds", valid[strings.Index(valid, "seeds:"):strings.Index(valid, "login:")], "seeds: []\n", "seeds"},
		{"no map", valid, "- a\n", ""},
		{"a certificate that is missing", "login:", "tlsFolder: /nowhere\nlogin:", "tlsFolder"},
	} {
		t.Run(test.why, func(t *testing.T) {
			text := strings.Replace(valid, test.before, test.after, 1)
			if text == valid {
				t.Fatal("nothing is replaced")
			}
			write(t, name, keys, text)
			if _, err := config.Load(name); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %q", err, test.says)
			}
		})
	}
	write(t, name, keys, strings.Replace(valid, "https://addons.example.com", "https://Addons.example.com:443/", 1))
	if got, err := config.Load(name); err != nil || got.Public.Host != "addons.example.com" {
		t.Errorf("a default port, which browsers leave out: %v, %v", got.Public, err)
	}
	write(t, name, keys, strings.Replace(valid, "https://addons.example.com", "http://127.0.0.1:8080", 1))
	if _, err := config.Load(name); err != nil {
		t.Errorf("http for a loopback address: %v", err)
	}
	expect.NoError(t, os.WriteFile(filepath.Join(keys, "a"), []byte("short"), 0o600))
	if _, err := config.Load(name); err == nil || !strings.Contains(err.Error(), "32 bytes") || strings.Contains(err.Error(), "short") {
		t.Errorf("a short key: %v", err)
	}
}

// Red when a change is not applied, an invalid one replaces a valid one or is not reported, or a renewed certificate is not noticed.
func TestTheConfigurationIsFollowed(t *testing.T) {
	name, keys := folder(t)
	secret := t.TempDir()
	renew := func() {
		authority, err := fleet.NewAuthority("test")
		expect.NoError(t, err)
		certificate, key, err := authority.Serving("web", nil, "addons.example.com")
		expect.NoError(t, err)
		expect.NoError(t, os.WriteFile(filepath.Join(secret, "tls.crt"), certificate, 0o600))
		expect.NoError(t, os.WriteFile(filepath.Join(secret, "tls.key"), key, 0o600))
	}
	renew()
	withTLS := strings.Replace(valid, "login:", "tlsFolder: "+secret+"\nlogin:", 1)
	write(t, name, keys, withTLS)
	first, err := config.Load(name)
	expect.NoError(t, err)
	ticks, applied, reported := make(chan time.Time), make(chan *config.Loaded, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		config.Follower{
			File: name, Present: first, Apply: func(next *config.Loaded) error { applied <- next; return nil }, Report: func(err error) { reported <- err },
		}.Follow(ctx, ticks)
	}()
	tick := func() { ticks <- time.Time{}; ticks <- time.Time{} } // the second begins after the first is done
	tick()
	write(t, name, keys, strings.Replace(withTLS, "name: two", "name: three", 1))
	tick()
	if next := <-applied; next.Seeds[1].Name != "three" || <-reported != nil {
		t.Error("the change is not applied")
	}
	write(t, name, keys, "publicURL: 7\n")
	tick()
	if <-reported == nil || len(applied) > 0 {
		t.Error("an invalid configuration is applied, or is not reported")
	}
	write(t, name, keys, valid)
	tick()
	if err := <-reported; err == nil || !strings.Contains(err.Error(), "tlsFolder") {
		t.Errorf("without a certificate: %v", err)
	}
	renew()
	write(t, name, keys, withTLS)
	tick()
	if next := <-applied; next.Seeds[1].Name != "two" || <-reported != nil {
		t.Error("the renewed certificate is not applied")
	}
	cancel()
	<-ended
}
