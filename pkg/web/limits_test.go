package web_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trellis-addons/trellis/pkg/web/config"
	"github.com/trellis-addons/trellis/test/expect"
)

// Red when a page does not show the seeds that answer because of others that say nothing, or asks one of these again after it waited once.
func TestDeadSeedsDoNotDelayOthers(t *testing.T) {
	forbidden := server(t, http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) { writer.WriteHeader(http.StatusForbidden) }))
	alive := server(t, answers(func(string) string { return `{"total":1,"counts":{"Ready":1}}` }))
	for _, path := range []string{"/", "/catalogue?in=seed-0/n/c", "/sets", "/installations"} {
		dead := silent(t)
		seeds := make([]config.Server, 20)
		for i := range seeds {
			seeds[i] = alive
			if i%2 == 1 {
				seeds[i] = dead.Server
			}
		}
		alice := open(t, &forbidden, seeds...).as("alice")
		dead.forget(t)
		status, body := alice.do(http.MethodGet, path, nil)
		if status != http.StatusOK || !strings.Contains(body, "seed-1") {
			t.Errorf("%s answers %d: %.2000s", path, status, body)
		}
		dead.mutex.Lock()
		if dead.late > 0 {
			t.Errorf("%s waits again for a seed that does not answer: %d connections", path, dead.late)
		}
		dead.mutex.Unlock()
	}
}

// Red when one user sees a row, a name or an event that a seed gave to another.
func TestAnswersAreOfTheirUserOnly(t *testing.T) {
	seed := server(t, answers(func(token string) string {
		return strings.ReplaceAll(everything, `javascript:canary()`, "secret-of-"+token+" ")
	}))
	s := open(t, &seed, seed, seed)
	var all sync.WaitGroup
	for name, other := range map[string]string{"alice": "bob", "bob": "alice"} {
		u := s.as(name)
		for range 4 {
			all.Go(func() {
				for i := range 60 {
					path := pages[i%len(pages)]
					status, body := u.do(http.MethodGet, path, nil)
					if status == 0 || strings.Contains(body, "secret-of-"+other) || strings.Contains(body, ">"+other+"<") {
						t.Errorf("%s sees a text of %s at %s: %d", name, other, path, status)
					}
				}
			})
		}
	}
	all.Wait()
}

// Red when one user takes all streams, a stream for something that the user may not see is open, or streams outlive their configuration
// or the program.
func TestStreamsAreShared(t *testing.T) {
	foreign := http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if request.URL.Query().Get("namespace") == "foreign" {
			writer.WriteHeader(http.StatusForbidden)
			return
		}
		answers(func(string) string { return "{}" }).ServeHTTP(writer, request)
	})
	s := open(t, nil, server(t, foreign))
	alice, bob := s.as("alice"), s.as("bob")
	alice.client.Timeout, bob.client.Timeout = 0, 0
	stream := func(of *user, path string, want int) *http.Response {
		t.Helper()
		response, err := of.send(http.MethodGet, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		if response.StatusCode != want {
			t.Errorf("%s answers %d, want %d", path, response.StatusCode, want)
		}
		return response
	}
	stream(alice, "/events?seed=nine", http.StatusNotFound)
	stream(alice, "/events?seed=seed-0&namespace=foreign", http.StatusNotFound)
	for range 64 {
		stream(alice, "/events?seed=seed-0&namespace=mine", http.StatusOK)
	}
	stream(alice, "/events", http.StatusTooManyRequests)
	open := stream(bob, "/events", http.StatusOK)
	s.config.Seeds[0].Name = "renamed"
	s.write()
	s.ticks <- time.Time{}
	ends(t, open)
	open = stream(bob, "/events", http.StatusOK)
	s.end()
	ends(t, open)
}

// ends reads a stream until its end.
func ends(t *testing.T, of *http.Response) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(of.Body); lines.Scan(); {
		}
	}()
	select {
	case <-ended:
	case <-time.After(most):
		t.Error("the stream does not end")
	}
}

// Red when a form that was as large as a form may be is lost with the login, or the path for kept forms takes others.
func TestALargeFormOutlivesItsLogin(t *testing.T) {
	seed := server(t, answers(func(string) string {
		return `{"total":1,"clusters":[{"namespace":"n","name":"c"}],"addons":[{"name":"web","versions":[{"version":"1.0.0"}]}]}`
	}))
	s := open(t, nil, seed)
	alice := s.as("alice")
	alice.do(http.MethodPost, "/logout", nil)
	const path = "/clusters/seed-0/n/c/install/web"
	large := "a: " + strings.Repeat("lines-\"<>&\n  ", 13_500)
	status, body := alice.do(http.MethodPost, path, url.Values{"values": {large}, "do": {"preview"}})
	_, sealed, _ := strings.Cut(body, `name="sealed" value="`)
	sealed, _, _ = strings.Cut(sealed, `"`)
	if status != http.StatusUnauthorized || len(sealed) < len(large) {
		t.Fatalf("without a login: %d %.500s", status, body)
	}
	alice.do(http.MethodPost, "/login", url.Values{"token": {"alice"}, "to": {"/login"}})
	status, body = alice.do(http.MethodPost, path+"?kept=1", url.Values{"sealed": {sealed}})
	if status != http.StatusOK || !strings.Contains(body, "lines-&#34;&lt;&gt;&amp;") {
		t.Errorf("the kept form: %d %.500s", status, body)
	}
	for why, form := range map[string]url.Values{
		"no kept form": {"values": {strings.Repeat("a", 400<<10)}}, "a large form": {"values": {strings.Repeat("a", 1<<20)}},
	} {
		status, _ := alice.do(http.MethodPost, path+"?kept=1", form)
		if status != http.StatusBadRequest && status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %d", why, status)
		}
	}
}

// Red when a login that all servers refuse is shown as an empty platform.
func TestARefusedLoginAsksAgain(t *testing.T) {
	var mutex sync.Mutex
	refuses := false
	seed := server(t, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		if refuses {
			writer.WriteHeader(http.StatusUnauthorized)
			return
		}
		answers(func(string) string { return "{}" }).ServeHTTP(writer, request)
	}))
	alice := open(t, nil, seed, seed).as("alice")
	mutex.Lock()
	refuses = true
	mutex.Unlock()
	for _, path := range []string{"/", "/clusters", "/installations", "/clusters/seed-0/n/installations/web"} {
		if status, body := alice.do(http.MethodGet, path, nil); status != http.StatusUnauthorized || !strings.Contains(body, "Log in") {
			t.Errorf("%s answers %d", path, status)
		}
	}
}

// Red when made-up tokens take the turns of users, who wait longer than a read may take then.
func TestLoginsDoNotDelayUsers(t *testing.T) {
	release := make(chan struct{})
	waiting := make(chan struct{}, 1000)
	seed := server(t, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if strings.Contains(request.Header.Get("Authorization"), "made-up") {
			waiting <- struct{}{}
			select {
			case <-release:
			case <-time.After(100 * time.Millisecond):
			}
			writer.WriteHeader(http.StatusUnauthorized)
			return
		}
		answers(func(string) string { return "{}" }).ServeHTTP(writer, request)
	}))
	s := open(t, nil, seed)
	alice := s.as("alice")
	var all sync.WaitGroup
	for i := range 400 {
		all.Go(func() { alice.do(http.MethodPost, "/login", url.Values{"token": {fmt.Sprintf("made-up-%d", i)}}) })
	}
	for range 8 {
		<-waiting
	}
	if _, body := alice.do(http.MethodGet, "/clusters/seed-0/n/installations/web", nil); strings.Contains(body, "take too long") {
		t.Error("a user gets no turn")
	}
	close(release)
	all.Wait()
}

// Red when a text with several lines is in an input of one line, where a browser loses their ends, or loses its first line.
func TestATextWithLinesHasATextarea(t *testing.T) {
	seed := server(t, answers(func(string) string {
		return `{"total":1,"clusters":[{"namespace":"n","name":"c"}],"metadata":{"namespace":"n","name":"web"},
			"spec":{"addonRef":{"name":"web","version":"1.0.0"},"clusterName":"c","values":{"note":"\nfirst\nsecond","mode":"old"}},
			"formSpec":[{"internalName":"note","type":"text"},{"internalName":"mode","type":"select","options":["new"]}]}`
	}))
	status, body := open(t, nil, seed).as("alice").do(http.MethodGet, "/clusters/seed-0/n/values/web", nil)
	_, text, _ := strings.Cut(body, `name="field.note"`)
	_, text, _ = strings.Cut(text, ">")
	if status != http.StatusOK || !strings.HasPrefix(text, "\n\nfirst\nsecond</textarea>") {
		t.Errorf("%d: the text is %.200q", status, text)
	}
	if !strings.Contains(body, `<option value="old" selected>`) {
		t.Error("a value that is no option is lost")
	}
}

// Red when a page that a script keeps up to date does not say that the login has ended, or gets another page into its middle.
func TestAPartSaysThatTheLoginHasEnded(t *testing.T) {
	alice := open(t, nil, server(t, answers(func(string) string { return "{}" }))).as("alice")
	alice.do(http.MethodPost, "/logout", nil)
	for target, path := range map[string]string{"live": "/installations", "preview": "/clusters/seed-0/n/c/install/web"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+alice.address+path, nil)
		expect.NoError(t, err)
		request.Host = host
		request.Header.Set("HX-Request", "true")
		request.Header.Set("HX-Target", target)
		response, err := alice.client.Do(request)
		expect.NoError(t, err)
		defer response.Body.Close()
		content, err := io.ReadAll(response.Body)
		expect.NoError(t, err)
		if text := string(content); !strings.HasPrefix(text, `<div id="`+target+`">`) || !strings.Contains(text, "login has ended") {
			t.Errorf("%s is %.300s", target, text)
		}
	}
}
