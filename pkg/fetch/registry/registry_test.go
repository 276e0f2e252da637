package registry_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	user, password = "canary-user", "canary-password"
	given          = "canary-token"
)

// open creates a session that reaches the servers of a test.
func open(t *testing.T, host, name string, credentials fetch.Credentials) *registry.Session {
	t.Helper()
	network := outbound.New(outbound.Options{AllowCIDRs: fetchtest.Loopback})
	t.Cleanup(network.Close)
	session, err := registry.Open(network, registry.Repository{Host: host, Name: name}, credentials)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// trusting adds the certificates of a test's servers to credentials.
func trusting(credentials fetch.Credentials, servers ...*fetchtest.Server) fetch.Credentials {
	for _, server := range servers {
		credentials.CA = append(credentials.CA, server.CA...)
	}
	return credentials
}

func isRefused(err error) bool {
	var refusal *fetch.RefusedError
	return errors.As(err, &refusal)
}

func unauthorized(err error) (*fetch.UnauthorizedError, bool) {
	var found *fetch.UnauthorizedError
	return found, errors.As(err, &found)
}

func noCanary(t *testing.T, err error) {
	t.Helper()
	if err != nil && strings.Contains(err.Error(), "canary") {
		t.Errorf("the error tells a secret: %v", err)
	}
}

// guard requires a token from the realm; {host} is replaced by its own place.
func guard(realm func() string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/token" {
				giveToken(w, r)
				return
			}
			if r.Header.Get("Authorization") != "Bearer "+given {
				at := strings.ReplaceAll(realm(), "{host}", r.Host)
				w.Header().Set("WWW-Authenticate", `Bearer realm="`+at+`",service="of tests",scope="repository:other:push"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// giveToken issues a token for user and password, or for a refresh token, and only for the right scope.
func giveToken(w http.ResponseWriter, r *http.Request) {
	name, word, _ := r.BasicAuth()
	_ = r.ParseForm()
	known := name == user && word == password || r.Method == http.MethodPost && r.PostForm.Get("refresh_token") == "canary-refresh"
	if !known || r.Form.Get("scope") != "repository:team/x:pull" || r.Form.Get("service") != "of tests" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	fmt.Fprintf(w, `{"access_token": %q}`, given)
}

func at(place string) func() string { return func() string { return place } }

func dockerConfig(key, value string) []byte {
	return fmt.Appendf(nil, `{"auths": {%q: %s}}`, key, value)
}

func basicAuth() string {
	return fmt.Sprintf(`{"auth": %q}`, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
}

func TestLogins(t *testing.T) {
	server := fetchtest.ServeRegistry(t, guard(at("https://{host}/token")))
	server.Image("team/x", "v1", fetchtest.Archive())
	host := server.Host
	for _, test := range []struct {
		why         string
		credentials fetch.Credentials
		ok          bool
	}{
		{"user and password", fetch.Credentials{Username: user, Password: password}, true},
		{"for the host that the Secret names", fetch.Credentials{Username: user, Password: password, Hosts: []string{host}}, true},
		{"a token of the registry's own", fetch.Credentials{BearerToken: given}, true},
		{"a docker config", fetch.Credentials{DockerConfig: dockerConfig(host, basicAuth())}, true},
		{"with a URL as key", fetch.Credentials{DockerConfig: dockerConfig("https://"+host+"/v1/", basicAuth())}, true},
		{"for a part of the registry", fetch.Credentials{DockerConfig: dockerConfig(host+"/team", basicAuth())}, true},
		{"with user and password", fetch.Credentials{DockerConfig: dockerConfig(host, `{"username": "canary-user", "password": "canary-password"}`)}, true},
		{"with an identity token", fetch.Credentials{DockerConfig: dockerConfig(host, `{"identitytoken": "canary-refresh"}`)}, true},
		{"with a registry token", fetch.Credentials{DockerConfig: dockerConfig(host, `{"registrytoken": "canary-token"}`)}, true},
		{"nobody", fetch.Credentials{}, false},
		{"another password", fetch.Credentials{Username: user, Password: "canary"}, false},
		{"for other hosts", fetch.Credentials{Username: user, Password: password, Hosts: []string{"example.com"}}, false},
		{"a token for other hosts", fetch.Credentials{BearerToken: given, Hosts: []string{"example.com"}}, false},
		{"a docker config for another registry", fetch.Credentials{DockerConfig: dockerConfig("example.com", basicAuth())}, false},
		{"for another part", fetch.Credentials{DockerConfig: dockerConfig(host+"/tea", basicAuth())}, false},
		{"of nothing", fetch.Credentials{DockerConfig: dockerConfig(host, "null")}, false},
	} {
		t.Run(test.why, func(t *testing.T) {
			session := open(t, host, "team/x", trusting(test.credentials, server.Server))
			manifest, err := session.Manifest(t.Context(), "v1")
			noCanary(t, err)
			if test.ok != (err == nil) || err == nil && manifest.Image == nil {
				t.Fatalf("got %v, %v", manifest, err)
			}
			if _, denied := unauthorized(err); !test.ok && !denied && !isRefused(err) {
				t.Errorf("got %v", err)
			}
			if test.ok { // the session keeps its token
				var layer bytes.Buffer
				if err := session.Blob(t.Context(), manifest.Image.Layers[0].Digest.String(), 1<<20, &layer); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestDockerConfigTakesTheLongestKey(t *testing.T) {
	server := fetchtest.ServeRegistry(t, guard(at("https://{host}/token")))
	server.Image("team/x", "v1", fetchtest.Archive())
	config := fmt.Appendf(nil, `{"auths": {%q: {"username": "other", "password": "x"}, %q: %s}}`, server.Host, server.Host+"/team", basicAuth())
	session := open(t, server.Host, "team/x", trusting(fetch.Credentials{DockerConfig: config}, server.Server))
	if _, err := session.Manifest(t.Context(), "v1"); err != nil {
		t.Error(err)
	}
}

// TestDockerConfigsThatAreNoneAreRefused (AC19): A Secret with an invalid docker config is refused, and its content
// is not in the error.
func TestDockerConfigsThatAreNoneAreRefused(t *testing.T) {
	for _, config := range []string{`canary`, `{"auths": {"r.example.com": {"auth": "canary"}}}`, `{"auths": {"r.example.com": {"auth": "Y2FuYXJ5"}}}`, `[]`} {
		_, err := registry.Open(nil, registry.Repository{Host: "r.example.com", Name: "x"}, fetch.Credentials{DockerConfig: []byte(config)})
		noCanary(t, err)
		if !isRefused(err) {
			t.Errorf("%s: got %v", config, err)
		}
	}
}

func TestBasicLogin(t *testing.T) {
	server := fetchtest.ServeRegistry(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if name, word, _ := r.BasicAuth(); name != user || word != password {
				w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	server.Image("x", "v1", fetchtest.Archive())
	for why, test := range map[string]struct {
		credentials fetch.Credentials
		ok, sent    bool
	}{
		"right": {fetch.Credentials{Username: user, Password: password}, true, false},
		"wrong": {fetch.Credentials{Username: user, Password: "canary"}, false, true},
		"none":  {fetch.Credentials{}, false, false},
		"bound": {fetch.Credentials{Username: user, Password: password, Hosts: []string{"example.com"}}, false, false},
	} {
		_, err := open(t, server.Host, "x", trusting(test.credentials, server.Server)).Manifest(t.Context(), "v1")
		noCanary(t, err)
		if denied, ok := unauthorized(err); test.ok != (err == nil) || !test.ok && (!ok || denied.Sent != test.sent) {
			t.Errorf("%s: got %v", why, err)
		}
	}
}

// TestCredentialsGoToNoRealmOnAnotherHost (V27): A token service on another host gets credentials only if the Secret
// names it.
func TestCredentialsGoToNoRealmOnAnotherHost(t *testing.T) {
	realm := fetchtest.Serve(t, http.HandlerFunc(giveToken))
	server := fetchtest.ServeRegistry(t, guard(at(realm.URL+"/token")))
	server.Image("team/x", "v1", fetchtest.Archive())
	realmHost := strings.TrimPrefix(realm.URL, "https://")
	refresh := dockerConfig(server.Host, `{"identitytoken": "canary-refresh"}`)
	for _, test := range []struct {
		why         string
		credentials fetch.Credentials
		ok          bool
	}{
		{"the Secret names nobody", fetch.Credentials{Username: user, Password: password}, false},
		{"the Secret names the registry", fetch.Credentials{Username: user, Password: password, Hosts: []string{server.Host}}, false},
		{"the Secret names another port", fetch.Credentials{
			Username: user, Password: password, Hosts: []string{server.Host, "127.0.0.1:1"},
		}, false},
		{"an identity token", fetch.Credentials{DockerConfig: refresh}, false},
		{"the Secret names both", fetch.Credentials{Username: user, Password: password, Hosts: []string{server.Host, realmHost}}, true},
		{"an identity token for both", fetch.Credentials{DockerConfig: refresh, Hosts: []string{server.Host, realmHost}}, true},
	} {
		t.Run(test.why, func(t *testing.T) {
			before := len(realm.Requests())
			session := open(t, server.Host, "team/x", trusting(test.credentials, server.Server, realm))
			_, err := session.Manifest(t.Context(), "v1")
			noCanary(t, err)
			if test.ok != (err == nil) || !test.ok && (!isRefused(err) || !strings.Contains(err.Error(), realmHost)) {
				t.Errorf("got %v", err)
			}
			for _, seen := range realm.Requests()[before:] {
				if !test.ok && (seen.Header.Get("Authorization") != "" || seen.Method != http.MethodGet) {
					t.Errorf("the realm got %s with %v", seen.Method, seen.Header)
				}
			}
		})
	}
}

// TestAnonymousTokens: Docker Hub issues its tokens on another host, for all users.
func TestAnonymousTokens(t *testing.T) {
	realm := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"token": %q}`, given) }))
	server := fetchtest.ServeRegistry(t, guard(at(realm.URL+"/token?account=x")))
	server.Image("team/x", "v1", fetchtest.Archive())
	if _, err := open(t, server.Host, "team/x", trusting(fetch.Credentials{}, server.Server, realm)).Manifest(t.Context(), "v1"); err != nil {
		t.Error(err)
	}
}

// TestOddRealmsAreRefused (V27): A token service without an https URL is refused.
func TestOddRealmsAreRefused(t *testing.T) {
	for _, realm := range []string{
		"http://{host}/token", "file:///etc/passwd", "https://u:p@{host}/token", "https://169.254.169.254/token", "//{host}", "", "::",
		"https://{host}/token#x", "https://{host}/token?%zz",
	} {
		server := fetchtest.ServeRegistry(t, guard(at(realm)))
		session := open(t, server.Host, "team/x", trusting(fetch.Credentials{Username: user, Password: password}, server.Server))
		_, err := session.Manifest(t.Context(), "v1")
		noCanary(t, err)
		if !isRefused(err) && !strings.Contains(realm, "169.254") || err == nil {
			t.Errorf("%q: got %v", realm, err)
		}
		for _, seen := range server.Requests() {
			if seen.Header.Get("Authorization") != "" {
				t.Errorf("%q: credentials were sent", realm)
			}
		}
	}
}

// TestRedirectsOfRegistriesGetNoCredentials (V28): The host that a registry redirects to gets no token and no
// password, even if it requests them.
func TestRedirectsOfRegistriesGetNoCredentials(t *testing.T) {
	for why, answer := range map[string]http.HandlerFunc{
		"asks for a token": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="https://`+r.Host+`/token",service="of tests"`)
			w.WriteHeader(http.StatusUnauthorized)
		},
		"asks for a password": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		},
		"asks, and sends back": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/again")
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
	} {
		t.Run(why, func(t *testing.T) {
			other := fetchtest.Serve(t, answer)
			away := func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if strings.HasSuffix(r.URL.Path, "/good") {
						next.ServeHTTP(w, r)
						return
					}
					http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
				})
			}
			server := fetchtest.ServeRegistry(t, guard(at("https://{host}/token")), away)
			server.Image("team/x", "good", fetchtest.Archive())
			session := open(t, server.Host, "team/x", trusting(fetch.Credentials{Username: user, Password: password}, server.Server, other))
			if _, err := session.Manifest(t.Context(), "good"); err != nil {
				t.Fatal(err) // now it has a token
			}
			_, err := session.Manifest(t.Context(), "v1")
			blobErr := session.Blob(t.Context(), "sha256:"+strings.Repeat("a", 64), 100, io.Discard)
			for _, err := range []error{err, blobErr} {
				noCanary(t, err)
				if _, denied := unauthorized(err); !denied && !isRefused(err) {
					t.Errorf("got %v", err)
				}
			}
			if len(other.Requests()) < 2 {
				t.Fatalf("the other host was asked %d times", len(other.Requests()))
			}
			for _, seen := range other.Requests() {
				if seen.Header.Get("Authorization") != "" || seen.Path == "/token" {
					t.Errorf("the other host got %s with %v", seen.Path, seen.Header)
				}
			}
		})
	}
}

func TestBlobsOnAnotherHost(t *testing.T) {
	content := fetchtest.Archive()
	storage := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }))
	server := fetchtest.ServeRegistry(t, guard(at("https://{host}/token")), func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, storage.URL+"/x?signature=y", http.StatusTemporaryRedirect)
		})
	})
	session := open(t, server.Host, "team/x", trusting(fetch.Credentials{Username: user, Password: password}, server.Server, storage))
	var got bytes.Buffer
	if err := session.Blob(t.Context(), fetchtest.Digest(content), 1<<20, &got); err != nil || !bytes.Equal(got.Bytes(), content) {
		t.Errorf("got %v", err)
	}
	if seen := storage.Requests(); len(seen) != 1 || seen[0].Header.Get("Authorization") != "" {
		t.Errorf("the storage got %v", seen)
	}
}

// endless sends an answer without end.
func endless(w http.ResponseWriter, start, piece string) {
	_, _ = io.WriteString(w, start)
	for {
		if _, err := io.WriteString(w, piece); err != nil {
			return
		}
	}
}

// TestEndlessAnswersOfRegistriesEnd (V30): An endless answer of a registry is cut off.
func TestEndlessAnswersOfRegistriesEnd(t *testing.T) {
	var written atomic.Int64
	piece := strings.Repeat(`"x",`, 1<<14)
	counting := func(w http.ResponseWriter, mediaType string) {
		w.Header().Set("Content-Type", mediaType)
		endless(counter{w, &written}, `{"annotations": [`, piece)
	}
	server := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/token"):
			counting(w, "application/json")
		case strings.HasSuffix(r.URL.Path, "/v1"):
			counting(w, registry.MediaTypeImage)
		case strings.Contains(r.URL.Path, "/blobs/"):
			counting(w, "application/octet-stream")
		default:
			w.Header().Set("WWW-Authenticate", `Bearer realm="https://`+r.Host+`/token"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	host := strings.TrimPrefix(server.URL, "https://")
	for why, ask := range map[string]func(*registry.Session) error{
		"a manifest": func(s *registry.Session) error { _, err := s.Manifest(t.Context(), "v1"); return err },
		"a token":    func(s *registry.Session) error { _, err := s.Manifest(t.Context(), "v2"); return err },
		"a blob": func(s *registry.Session) error {
			return s.Blob(t.Context(), "sha256:"+strings.Repeat("a", 64), 1<<20, io.Discard)
		},
	} {
		written.Store(0)
		if err := ask(open(t, host, "x", trusting(fetch.Credentials{}, server))); !isRefused(err) {
			t.Errorf("%s: got %v", why, err)
		}
		if read := written.Load(); read > 32<<20 { // including buffers on the way
			t.Errorf("%s: the server got rid of %d MiB", why, read>>20)
		}
	}
}

type counter struct {
	http.ResponseWriter
	count *atomic.Int64
}

func (c counter) Write(content []byte) (int, error) {
	written, err := c.ResponseWriter.Write(content)
	c.count.Add(int64(written))
	return written, err
}

// TestBytesOfAnotherDigestAreRefused (V31): Bytes that do not match their digest are refused.
func TestBytesOfAnotherDigestAreRefused(t *testing.T) {
	server := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", registry.MediaTypeImage)
		w.Header().Set("Docker-Content-Digest", r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:])
		fmt.Fprint(w, `{"schemaVersion": 2, "config": {}, "layers": []}`)
	}))
	session := open(t, strings.TrimPrefix(server.URL, "https://"), "x", trusting(fetch.Credentials{}, server))
	digest := "sha256:" + strings.Repeat("a", 64)
	if _, err := session.Manifest(t.Context(), digest); !isRefused(err) || !strings.Contains(err.Error(), "does not match this digest") {
		t.Errorf("a manifest: got %v", err)
	}
	if err := session.Blob(t.Context(), digest, 1<<20, io.Discard); !isRefused(err) || !strings.Contains(err.Error(), "does not match this digest") {
		t.Errorf("a blob: got %v", err)
	}
	manifest, err := session.Manifest(t.Context(), "v1")
	if err != nil || manifest.Digest == digest || !registry.IsDigest(manifest.Digest) {
		t.Errorf("a tag's digest is computed: got %v, %v", manifest, err)
	}
}

// TestManifestsThatAreTwoThingsAreRefused (V33): A document that is both index and manifest is refused.
func TestManifestsThatAreTwoThingsAreRefused(t *testing.T) {
	image, index := `"config": {}, "layers": []`, `"manifests": []`
	for _, test := range []struct {
		why, mediaType, content string
		ok                      bool
	}{
		{"an image", registry.MediaTypeImage, `{` + image + `}`, true},
		{"an image that says so", registry.MediaTypeImage, `{"mediaType": "` + registry.MediaTypeImage + `", ` + image + `}`, true},
		{"of docker", registry.MediaTypeDockerImage, `{` + image + `}`, true},
		{"an index", registry.MediaTypeIndex, `{` + index + `}`, true},
		{"of docker", registry.MediaTypeDockerList, `{` + index + `}`, true},
		{"a server that does not know", "text/plain; charset=utf-8", `{"mediaType": "` + registry.MediaTypeImage + `", ` + image + `}`, true},
		{"both", registry.MediaTypeImage, `{` + image + `, ` + index + `}`, false},
		{"both, of an index", registry.MediaTypeIndex, `{` + image + `, ` + index + `}`, false},
		{"both, in another spelling", registry.MediaTypeImage, `{` + image + `, "Manifests": []}`, false},
		{"an index that is called an image", registry.MediaTypeImage, `{` + index + `}`, false},
		{"an image that is called an index", registry.MediaTypeIndex, `{` + image + `}`, false},
		{"two answers to one question", registry.MediaTypeImage, `{"mediaType": "` + registry.MediaTypeIndex + `", ` + image + `}`, false},
		{"the other way round", registry.MediaTypeIndex, `{"mediaType": "` + registry.MediaTypeImage + `", ` + image + `}`, false},
		{"a media type that is a list", registry.MediaTypeImage, `{"mediaType": [], ` + image + `}`, false},
		{"no media type", "application/json", `{` + image + `}`, false},
		{"an old manifest", "application/vnd.docker.distribution.manifest.v1+json", `{"fsLayers": []}`, false},
		{"neither", registry.MediaTypeImage, `{}`, false},
		{"a page", "text/html", `<html>`, false},
		{"a list", registry.MediaTypeImage, `[]`, false},
		{"null", registry.MediaTypeImage, `null`, false},
		{"nothing", registry.MediaTypeImage, ``, false},
		{"deep", registry.MediaTypeImage, `{"annotations": ` + strings.Repeat("[", 1<<20), false},
		{"a layer that is none", registry.MediaTypeImage, `{"config": {}, "layers": [{"digest": 1}]}`, false},
	} {
		t.Run(test.why, func(t *testing.T) {
			server := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.mediaType)
				fmt.Fprint(w, test.content)
			}))
			session := open(t, strings.TrimPrefix(server.URL, "https://"), "x", trusting(fetch.Credentials{}, server))
			manifest, err := session.Manifest(t.Context(), "v1")
			if test.ok && (err != nil || (manifest.Image == nil) == (manifest.Index == nil)) || !test.ok && !isRefused(err) {
				t.Errorf("got %v, %v", manifest, err)
			}
		})
	}
}

// TestStatusesThatMayPassAreNotRepeated (AC24): A request to a busy registry is repeated later, and not at once.
func TestStatusesThatMayPassAreNotRepeated(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInternalServerError} {
		server := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "315360000")
			w.WriteHeader(status)
		}))
		session := open(t, strings.TrimPrefix(server.URL, "https://"), "x", trusting(fetch.Credentials{}, server))
		_, err := session.Manifest(t.Context(), "v1")
		var unavailable *fetch.UnavailableError
		if !errors.As(err, &unavailable) || len(server.Requests()) != 1 {
			t.Errorf("status %d: got %v after %d requests", status, err, len(server.Requests()))
		}
	}
}

func TestMissing(t *testing.T) {
	server := fetchtest.ServeRegistry(t)
	session := open(t, server.Host, "x", trusting(fetch.Credentials{}, server.Server))
	var missing *fetch.NotFoundError
	if _, err := session.Manifest(t.Context(), "v1"); !errors.As(err, &missing) {
		t.Errorf("got %v", err)
	}
}
