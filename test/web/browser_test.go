package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"golang.org/x/net/html"

	"github.com/trellis-addons/trellis/pkg/web"
	"github.com/trellis-addons/trellis/pkg/web/config"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// host is that of the public URL.
const host = "localhost:8080"

// site is a running web view.
type site struct {
	t            testing.TB
	address, own string
	file         string
	ticks        chan time.Time
	mutex        sync.Mutex
	log          strings.Builder
}

// settings are a configuration with a seed, which is the master too.
func settings(t testing.TB, w *seed, change ...func(*config.Config)) config.Config {
	t.Helper()
	cluster, keys := fleet.Shared().Cluster("seed"), t.TempDir()
	expect.NoError(t, os.WriteFile(filepath.Join(keys, "key"), bytes.Repeat([]byte("k"), 32), 0o600))
	server := config.Server{Server: cluster.URL(), CA: string(cluster.Config.CAData)}
	made := config.Config{
		PublicURL: "http://" + host, KeysFolder: keys, Login: config.Login{Kind: config.LoginToken},
		Master: &config.Master{Server: server, Namespace: w.platform},
		Seeds:  []config.Seed{{Server: server, Name: "one", Query: "https://" + w.endpoint.Address(), QueryCA: w.authority}},
	}
	for _, one := range change {
		one(&made)
	}
	return made
}

// open starts the web view until the end of the test.
func open(t testing.TB, of config.Config) *site {
	t.Helper()
	s := &site{t: t, file: filepath.Join(t.TempDir(), "config.yaml"), ticks: make(chan time.Time)}
	s.configure(of)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	started, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- web.Run(ctx, web.Options{
			File: s.file, Address: "127.0.0.1:0", OwnAddress: "127.0.0.1:0", Logger: s.logger(), Ticks: s.ticks,
			Started: func(address, own string) { s.address, s.own = address, own; close(started) },
		})
	}()
	select {
	case <-started:
	case err := <-ended:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *site) configure(of config.Config) {
	s.t.Helper()
	encoded, err := json.Marshal(of) // JSON is YAML
	expect.NoError(s.t, err)
	expect.NoError(s.t, os.WriteFile(s.file, encoded, 0o600))
}

func (s *site) logger() logr.Logger {
	return funcr.New(func(prefix, arguments string) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.log.WriteString(prefix + " " + arguments + "\n")
	}, funcr.Options{Verbosity: 9})
}

func (s *site) logged() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.log.String()
}

// browser is one of a user, without scripts.
type browser struct {
	*site
	client *http.Client
	// pages are all bodies that it got.
	pages strings.Builder
}

// addressed sends the headers by which a browser says where a form is from.
type addressed struct{}

func (addressed) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodPost && request.Header.Get("Origin") == "" {
		request.Header.Set("Origin", "http://"+host)
		request.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	return http.DefaultTransport.RoundTrip(request)
}

func (s *site) browser() *browser {
	jar, err := cookiejar.New(nil)
	expect.NoError(s.t, err)
	return &browser{site: s, client: &http.Client{Jar: jar, Transport: addressed{}}}
}

// as is a browser of a user who logged in with a token.
func (s *site) as(token string) *browser {
	s.t.Helper()
	b := s.browser()
	got := b.post("/login", url.Values{"token": {token}, "to": {"/clusters"}})
	if got.status != http.StatusOK || got.path != "/clusters" {
		s.t.Fatalf("the login leads to %s, %d:\n%s", got.path, got.status, got.text())
	}
	return b
}

// answer is a page.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	path   string
	body   string
	root   *html.Node
}

// do sends a request and follows redirects.
func (b *browser) do(request *http.Request) *answer {
	b.t.Helper()
	response, err := b.client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	expect.NoError(b.t, err)
	root, err := html.Parse(bytes.NewReader(content))
	expect.NoError(b.t, err)
	b.pages.Write(content)
	got := &answer{b.t, response.StatusCode, response.Header, response.Request.URL.Path, string(content), root}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") && request.Header.Get("HX-Request") == "" {
		got.isSound()
	}
	return got
}

func (b *browser) request(method, path string, form url.Values) *http.Request {
	b.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	request, err := http.NewRequestWithContext(b.t.Context(), method, "http://"+b.address+path, body)
	expect.NoError(b.t, err)
	request.Host = host
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return request
}

func (b *browser) get(path string) *answer {
	b.t.Helper()
	return b.do(b.request(http.MethodGet, path, nil))
}

func (b *browser) post(path string, form url.Values) *answer {
	b.t.Helper()
	return b.do(b.request(http.MethodPost, path, form))
}

// shows opens a page that has these texts.
func (b *browser) shows(path string, texts ...string) *answer {
	b.t.Helper()
	return b.get(path).has(http.StatusOK, texts...)
}

// has checks the status and texts of a page.
func (a *answer) has(status int, texts ...string) *answer {
	a.t.Helper()
	if a.status != status {
		a.t.Errorf("%s answers %d, want %d:\n%s", a.path, a.status, status, a.text())
	}
	for _, one := range texts {
		if !strings.Contains(a.text(), one) {
			a.t.Errorf("%s does not show %q:\n%s", a.path, one, a.text())
		}
	}
	return a
}

// hasNot checks that a page has none of these texts, not even in its markup.
func (a *answer) hasNot(texts ...string) *answer {
	a.t.Helper()
	for _, one := range texts {
		if strings.Contains(a.body, one) {
			a.t.Errorf("%s has %q", a.path, one)
		}
	}
	return a
}

// text is what people read.
func (a *answer) text() string {
	var out strings.Builder
	each(a.root, func(node *html.Node) {
		if node.Type == html.TextNode {
			out.WriteString(node.Data + " ")
		}
	})
	return strings.Join(strings.Fields(out.String()), " ")
}

func each(node *html.Node, visit func(*html.Node)) {
	visit(node)
	for child := node.FirstChild; child != nil; child = child.NextSibling {
		each(child, visit)
	}
}

func attribute(node *html.Node, name string) string {
	for _, one := range node.Attr {
		if one.Key == name {
			return one.Val
		}
	}
	return ""
}

// all are the elements of a name.
func (a *answer) all(name string) (found []*html.Node) {
	each(a.root, func(node *html.Node) {
		if node.Type == html.ElementNode && node.Data == name {
			found = append(found, node)
		}
	})
	return found
}

// links are the targets of links whose text has this part.
func (a *answer) link(text string) string {
	a.t.Helper()
	for _, one := range a.all("a") {
		if strings.Contains((&answer{root: one}).text(), text) {
			return attribute(one, "href")
		}
	}
	a.t.Fatalf("%s has no link %q:\n%s", a.path, text, a.text())
	return ""
}

// form are the values of the form that has a button, as a browser would send them after the button is pressed.
func (a *answer) form(button string) (action string, values url.Values) {
	a.t.Helper()
	for _, one := range a.all("form") {
		part := &answer{t: a.t, root: one}
		for _, pressed := range part.all("button") {
			if (&answer{root: pressed}).text() != button {
				continue
			}
			values = part.inputs()
			if name := attribute(pressed, "name"); name != "" {
				values.Set(name, attribute(pressed, "value"))
			}
			return attribute(one, "action"), values
		}
	}
	a.t.Fatalf("%s has no form with button %q:\n%s", a.path, button, a.text())
	return "", nil
}

func (a *answer) inputs() url.Values {
	values := url.Values{}
	for _, one := range a.all("input") {
		if kind := attribute(one, "type"); kind != "checkbox" || hasAttribute(one, "checked") {
			value := attribute(one, "value")
			if kind != "hidden" {
				value = strings.NewReplacer("\r", "", "\n", "").Replace(value) // as browsers do
			}
			values.Add(attribute(one, "name"), value)
		}
	}
	for _, one := range a.all("textarea") {
		text := ""
		each(one, func(node *html.Node) {
			if node.Type == html.TextNode {
				text += node.Data
			}
		})
		values.Add(attribute(one, "name"), text)
	}
	for _, one := range a.all("select") {
		options := (&answer{root: one}).all("option")
		if len(options) == 0 {
			continue
		}
		chosen := options[0]
		for _, option := range options {
			if hasAttribute(option, "selected") {
				chosen = option
			}
		}
		values.Add(attribute(one, "name"), attribute(chosen, "value"))
	}
	return values
}

func hasAttribute(node *html.Node, name string) bool {
	for _, one := range node.Attr {
		if one.Key == name {
			return true
		}
	}
	return false
}

// isSound checks what each page has: headers, landmarks, and nothing that runs or leads to another origin.
func (a *answer) isSound() {
	a.t.Helper()
	policy := a.header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; style-src 'self'") || a.header.Get("X-Content-Type-Options") != "nosniff" ||
		a.header.Get("Cache-Control") != "no-store" || a.header.Get("Referrer-Policy") != "same-origin" {
		a.t.Errorf("%s has headers %v", a.path, a.header)
	}
	each(a.root, func(node *html.Node) {
		if node.Type != html.ElementNode {
			return
		}
		for _, one := range node.Attr {
			value := strings.ToLower(strings.TrimSpace(one.Val))
			switch {
			case strings.HasPrefix(one.Key, "on"), one.Key == "style", strings.HasPrefix(one.Key, "hx-on"), strings.HasPrefix(value, "javascript:"),
				one.Key == "hx-vals", one.Key == "hx-trigger" && strings.Contains(value, "["):
				a.t.Errorf("%s has an attribute that could run: %s=%q", a.path, one.Key, one.Val)
			case (one.Key == "src" || one.Key == "action" || strings.HasPrefix(one.Key, "hx-") && strings.HasPrefix(value, "/")) && !isOwn(value):
				a.t.Errorf("%s leads elsewhere: %s=%q", a.path, one.Key, one.Val)
			case one.Key == "href" && !isOwn(value) && !strings.HasPrefix(value, "https://") && !strings.HasPrefix(value, "#"):
				a.t.Errorf("%s has link %q", a.path, one.Val)
			}
		}
		switch {
		case node.Data == "style", node.Data == "iframe", node.Data == "object", node.Data == "script" && (attribute(node, "src") == "" || node.FirstChild != nil):
			a.t.Errorf("%s has an element %s that could run", a.path, node.Data)
		case node.Data == "table":
			if len((&answer{root: node}).all("th")) == 0 {
				a.t.Errorf("%s has a table without heads", a.path)
			}
		}
	})
	if len(a.all("main")) > 1 || len(a.all("h1")) != 1 || len(a.all("title")) != 1 {
		a.t.Errorf("%s has no heading, or two", a.path)
	}
	a.isLabelled()
}

// isLabelled checks that each input has a name for screen readers, and each id is there once.
func (a *answer) isLabelled() {
	a.t.Helper()
	ids, labels := map[string]int{}, map[string]bool{}
	each(a.root, func(node *html.Node) {
		if id := attribute(node, "id"); id != "" {
			ids[id]++
		}
		if node.Data == "label" {
			labels[attribute(node, "for")] = true
		}
	})
	for id, number := range ids {
		if number > 1 {
			a.t.Errorf("%s has id %q %d times", a.path, id, number)
		}
	}
	for _, name := range []string{"input", "select", "textarea"} {
		for _, one := range a.all(name) {
			isInside := false
			for above := one.Parent; above != nil; above = above.Parent {
				isInside = isInside || above.Data == "label"
			}
			if attribute(one, "type") != "hidden" && !isInside && !labels[attribute(one, "id")] && attribute(one, "aria-label") == "" {
				a.t.Errorf("%s has an input %q without a label", a.path, attribute(one, "name"))
			}
		}
	}
}

func isOwn(value string) bool {
	return value == "" || value[0] == '#' || strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "//")
}

// eventually opens a page until it shows these texts.
func (b *browser) eventually(path string, texts ...string) *answer {
	b.t.Helper()
	var got *answer
	expect.Eventually(b.t, patience, func() error {
		got = b.get(path)
		for _, one := range texts {
			if !strings.Contains(got.text(), one) {
				return fmt.Errorf("%s answers %d without %q: %s", path, got.status, one, got.text())
			}
		}
		return nil
	})
	return got
}

// valuesOf is the form that changes the installation of a page.
func valuesOf(path string) string { return strings.Replace(path, "/installations/", "/values/", 1) }

const patience = 40 * time.Second
