package web_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/trellis-addons/trellis/pkg/web"
	"github.com/trellis-addons/trellis/pkg/web/config"
	"github.com/trellis-addons/trellis/test/expect"
)

// host is that of the public URL, and most a limit for every request.
const (
	host = "localhost:8080"
	most = 20 * time.Second
)

// answers is a hostile server: it accepts every token, and says the same to every other question.
type answers func(token string) string

func (a answers) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	token := strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer ")
	switch {
	case strings.HasSuffix(request.URL.Path, "/selfsubjectreviews"):
		fmt.Fprintf(writer, `{"status":{"userInfo":{"username":%q}}}`, token)
	case strings.HasSuffix(request.URL.Path, "/watch"):
		_, _ = io.WriteString(writer, "event: begin\ndata: {}\n\n")
		_ = http.NewResponseController(writer).Flush()
		<-request.Context().Done()
	default:
		_, _ = io.WriteString(writer, a(token))
	}
}

// server is the address of a handler.
func server(t *testing.T, handler http.Handler) config.Server {
	t.Helper()
	made := httptest.NewTLSServer(handler)
	t.Cleanup(made.Close)
	return config.Server{
		Server: made.URL, CA: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.Certificate().Raw})),
	}
}

// silence is a server that accepts connections and says nothing.
type silence struct {
	config.Server
	mutex sync.Mutex
	// begun and ended are numbers of connections, and late of those that began after another one had ended.
	begun, ended, late int
}

// forget waits until all connections so far have ended, and counts from there.
func (s *silence) forget(t *testing.T) {
	t.Helper()
	expect.Eventually(t, expect.Patience, func() error {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if s.ended < s.begun {
			return fmt.Errorf("%d of %d connections have ended", s.ended, s.begun)
		}
		s.begun, s.ended, s.late = 0, 0, 0
		return nil
	})
}

func silent(t *testing.T) *silence {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	s := &silence{Server: config.Server{Server: "https://" + listener.Addr().String()}}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			s.mutex.Lock()
			s.begun++
			if s.ended > 0 {
				s.late++
			}
			s.mutex.Unlock()
			go func() {
				_, _ = io.Copy(io.Discard, connection)
				s.mutex.Lock()
				s.ended++
				s.mutex.Unlock()
			}()
		}
	}()
	return s
}

// site is a running web view.
type site struct {
	t             *testing.T
	config        config.Config
	file, address string
	ticks         chan time.Time
	end           context.CancelFunc
	ended         chan error
	mutex         sync.Mutex
	log           strings.Builder
}

// open serves seeds with a login by token.
func open(t *testing.T, master *config.Server, seeds ...config.Server) *site {
	t.Helper()
	keys := t.TempDir()
	expect.NoError(t, os.WriteFile(filepath.Join(keys, "key"), bytes.Repeat([]byte("k"), 32), 0o600))
	s := &site{t: t, file: filepath.Join(t.TempDir(), "config.yaml"), ticks: make(chan time.Time), ended: make(chan error, 1)}
	s.config = config.Config{PublicURL: "http://" + host, KeysFolder: keys, Login: config.Login{Kind: config.LoginToken}}
	if master != nil {
		s.config.Master = &config.Master{Server: *master}
	}
	for i, one := range seeds {
		s.config.Seeds = append(s.config.Seeds, config.Seed{Server: one, Name: fmt.Sprintf("seed-%d", i), Query: one.Server, QueryCA: one.CA})
	}
	s.write()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	s.end = cancel
	started := make(chan struct{})
	go func() {
		s.ended <- web.Run(ctx, web.Options{
			File: s.file, Address: "127.0.0.1:0", OwnAddress: "127.0.0.1:0", Logger: s.logger(), Ticks: s.ticks,
			Started: func(address, _ string) { s.address = address; close(started) },
		})
	}()
	select {
	case <-started:
	case err := <-s.ended:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-s.ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *site) write() {
	s.t.Helper()
	encoded, err := json.Marshal(s.config) // JSON is YAML
	expect.NoError(s.t, err)
	expect.NoError(s.t, os.WriteFile(s.file, encoded, 0o600))
}

func (s *site) logger() logr.Logger {
	return funcr.New(func(prefix, arguments string) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.log.WriteString(prefix + " " + arguments + "\n")
	}, funcr.Options{})
}

func (s *site) logged() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.log.String()
}

// user is a logged-in browser.
type user struct {
	*site
	client *http.Client
}

func (s *site) as(token string) *user {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	expect.NoError(s.t, err)
	u := &user{s, &http.Client{Jar: jar, Timeout: most}}
	if status, body := u.do(http.MethodPost, "/login", url.Values{"token": {token}, "to": {"/login"}}); status != http.StatusOK {
		s.t.Fatalf("the login answers %d: %s", status, body)
	}
	return u
}

// send opens the answer to a request.
func (u *user) send(method, path string, form url.Values) (*http.Response, error) {
	request, err := http.NewRequestWithContext(u.t.Context(), method, "http://"+u.address+path, strings.NewReader(form.Encode()))
	expect.NoError(u.t, err)
	request.Host = host
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return u.client.Do(request)
}

// do is the status and the body of an answer; 0 if the connection breaks.
func (u *user) do(method, path string, form url.Values) (int, string) {
	response, err := u.send(method, path, form)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(content)
}

// pages are one of each kind.
var pages = []string{
	"/", "/catalogue", "/catalogue?in=seed-0/n/c", "/catalogue/web", "/clusters", "/clusters/seed-0/n", "/clusters/seed-0/n/c",
	"/clusters/seed-0/n/c?to=1.40.0", "/clusters/seed-0/n/c/install/web", "/clusters/seed-0/n/installations/web",
	"/clusters/seed-0/n/installations/web?show=objects", "/clusters/seed-0/n/values/web", "/installations", "/sets", "/sets/web",
	"/sets/web?seed=seed-0", "/catalogues", "/catalogues/web",
}

// canary runs in a page that shows it as markup, in an attribute, or in an address.
const canary = `javascript:canary()//\"'></td></textarea></title><script>canary()</script><img src=x onerror=canary()>{{.}}`

// everything has a hostile text in each field that a page reads.
var everything = strings.ReplaceAll(`{"total":1,"truncated":true,"counts":{"X":3,"Failing":1},"after":"","kkpVersion":"X","k8sVersion":"X",
"metadata":{"name":"X","namespace":"X","labels":{"X":"X"},"annotations":{"X":"X"}},
"installations":[{"namespace":"n","name":"X","cluster":"X","addon":"X","version":"X","requested":"X","update":"X","state":"X","reason":"X",
 "message":"X","objects":"X","set":"X"}],
"clusters":[{"namespace":"n","name":"c","kind":"X","k8sVersion":"X","kkpVersion":"X","counts":{"X":1},
 "addonsReady":{"type":"X","status":"X",
 "reason":"X","message":"X"},"state":"X","item":"X"}],
"addons":[{"name":"web","displayName":"X","supportedBy":"X","description":"X","documentationURL":"X",
 "versions":[{"version":"X","catalogue":"X","deprecated":"X"}],"excluded":[{"version":"X","catalogue":"X","reason":"X","message":"X"}]}],
"formSpec":[{"displayName":"X","internalName":"X","helpText":"X","type":"select","options":["X"],"default":"X"},
 {"displayName":"X","internalName":"a.b","helpText":"X","type":"text","default":"X"}],
"formProblem":"X","documentationURL":"X","displayName":"X","description":"X","method":"X",
"sets":[{"name":"X","state":"X","reason":"X","message":"X","counts":{"selected":2147483647,"failed":-5,"current":2147483647}}],
"groups":[{"name":"X","state":"X"}],"pending":[{"item":"X","change":"X","from":"X","to":"X"}],
"conditions":[{"type":"X","status":"X","reason":"X"}],
"items":[{"metadata":{"name":"X"},"regarding":{"name":"X"},"note":"X","reason":"X","type":"Warning","spec":{"type":"X"},
 "status":{"conditions":[{"type":"Ready","status":"False","reason":"X","message":"X"}]}}],
"spec":{"addonRef":{"name":"web","version":"X"},"clusterName":"c","targetNamespace":"X","values":{"a":{"b":"X"}},"displayName":"X"},
"status":{"version":"X","target":"X","conditions":[{"type":"Ready","status":"False","reason":"X","message":"X"}],
 "unhealthy":[{"ref":"X","reason":"X","message":"X"}],"userInfo":{"username":"X"}}}`, "X", canary)

// Red when an answer of a seed breaks a page, keeps it from ending, runs in it, or takes part in a write of more than one object.
func TestHostileSeedsBreakNoPage(t *testing.T) {
	for why, text := range map[string]string{
		"null": "null", "nothing": "", "an empty map": "{}", "a list": "[]", "no JSON": "<script>canary()</script>",
		"counts without rows": `{"total":1,"counts":{"Failing":7},"clusters":[]}`,
		"a cursor that never ends": `{"total":9,"after":"next","clusters":[{"namespace":"n","name":"other"}],
			"installations":[{"namespace":"n","name":"a"}]}`,
		"an object without a name": `{"metadata":{"namespace":"n"}}`,
		"many values":              `{"installations":[` + strings.Repeat("{},", 500_000) + `{}]}`,
		"deep values":              `{"spec":{"values":` + strings.Repeat(`{"a":`, 9_000) + "1" + strings.Repeat("}", 9_000) + "}}",
		"hostile texts":            everything,
	} {
		t.Run(why, func(t *testing.T) {
			var mutex sync.Mutex
			var wide []string
			hostile := server(t, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
				if strings.HasSuffix(request.URL.Path, "/addoninstallations") && request.Method != http.MethodGet && request.Method != http.MethodPost {
					mutex.Lock()
					wide = append(wide, request.Method+" "+request.URL.Path)
					mutex.Unlock()
				}
				answers(func(string) string { return text }).ServeHTTP(writer, request)
			}))
			s := open(t, &hostile, hostile)
			alice := s.as("alice")
			for _, path := range pages {
				status, body := alice.do(http.MethodGet, path, nil)
				if status < 200 || status >= 600 {
					t.Errorf("%s answers nothing: %s", path, body)
				}
				for _, runs := range []string{"<script>canary", "<img src=x", `href="javascript`, `action="javascript`, " onerror=canary()>"} {
					if strings.Contains(body, runs) {
						t.Errorf("%s has %s", path, runs)
					}
				}
			}
			for do, facts := range map[string]string{"uninstall": "Nothing is applied.", "pause": "", "reconcile": ""} {
				sum := sha256.Sum256([]byte(facts))
				form := url.Values{"do": {do}, "shown": {fmt.Sprintf("0-%x", sum[:6])}}
				if status, _ := alice.do(http.MethodPost, "/clusters/seed-0/n/installations/web", form); status == 0 {
					t.Errorf("%s answers nothing", do)
				}
			}
			if strings.Contains(s.logged(), "panic") || strings.Contains(s.logged(), "canary") {
				t.Errorf("the log has %.2000s", s.logged())
			}
			mutex.Lock()
			defer mutex.Unlock()
			if len(wide) > 0 {
				t.Errorf("writes to collections: %v", wide)
			}
		})
	}
}
