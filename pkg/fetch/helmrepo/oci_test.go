package helmrepo_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/helmrepo"
)

func inRegistry(server *fetchtest.Registry, chart, version string) fetch.Reference {
	return fetch.Reference{
		Location:    helmrepo.Location{URL: "oci://" + server.Host + "/charts/", Chart: chart, Version: fetch.Selector(version)},
		Credentials: fetch.Credentials{CA: server.CA},
	}
}

func TestChartsInRegistries(t *testing.T) {
	server := fetchtest.ServeRegistry(t)
	packed := fetchtest.Chart("redis", "1.2.3+build", map[string]string{"templates/x.yaml": "a: b"})
	server.Chart("charts/redis", "1.2.3_build", packed)
	files, digest, err := fetchInto(t, client(t), inRegistry(server, "redis", "1.2.3+build"))
	if err != nil {
		t.Fatal(err)
	}
	if files["templates/x.yaml"] != "a: b" || !strings.Contains(files["Chart.yaml"], "1.2.3+build") {
		t.Errorf("got %v", files)
	}
	if want := fetchtest.Digest(packed); digest != want {
		t.Errorf("digest %s, want the archive's %s", digest, want)
	}
	revision, err := client(t).Resolve(t.Context(), inRegistry(server, "redis", "1.2.3+build"))
	if diff := cmp.Diff(fetch.Revision{Name: "1.2.3+build", Digest: digest}, revision); diff != "" || err != nil {
		t.Errorf("%v, revision (-want +got):\n%s", err, diff)
	}
	for why, reference := range map[string]fetch.Reference{
		"another version": inRegistry(server, "redis", "1.2.4"), "another chart": inRegistry(server, "postgres", "1.2.3"),
	} {
		if _, _, err := fetchInto(t, client(t), reference); !isMissing(err) {
			t.Errorf("%s: got %v", why, err)
		}
	}
}

// TestChartTagThatMovesIsResolvedOnce (V32): A tag of a chart that moves between two requests is resolved once.
func TestChartTagThatMovesIsResolvedOnce(t *testing.T) {
	asked := 0
	server := fetchtest.ServeRegistry(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if tag, ok := strings.CutSuffix(r.URL.Path, "/manifests/1.0.0"); ok {
				if asked++; asked > 1 {
					r.URL.Path = tag + "/manifests/moved"
				}
			}
			next.ServeHTTP(w, r)
		})
	})
	server.Chart("charts/redis", "1.0.0", fetchtest.Chart("redis", "1.0.0", map[string]string{"x": "good"}))
	server.Chart("charts/redis", "moved", fetchtest.Chart("redis", "1.0.0", map[string]string{"x": "bad"}))
	files, _, err := fetchInto(t, client(t), inRegistry(server, "redis", "1.0.0"))
	if err != nil || files["x"] != "good" || asked != 1 {
		t.Errorf("got %v, %v, the tag was asked for %d times", files, err, asked)
	}
}

// TestChartWithOtherBytesIsRefused (V31): A chart whose bytes do not match its digest is refused.
func TestChartWithOtherBytesIsRefused(t *testing.T) {
	evil := fetchtest.Chart("redis", "1.0.0", map[string]string{"x": "bad"})
	server := fetchtest.ServeRegistry(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/blobs/") {
				_, _ = w.Write(evil)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	server.Chart("charts/redis", "1.0.0", fetchtest.Chart("redis", "1.0.0", nil))
	if files, _, err := fetchInto(t, client(t), inRegistry(server, "redis", "1.0.0")); !isRefused(err) || len(files) != 0 {
		t.Errorf("got %v, %v", files, err)
	}
}

// TestArtifactsThatAreNoChartsAreRefused (AC25, V29): An artifact that is no chart, or whose layer is elsewhere, is
// refused.
func TestArtifactsThatAreNoChartsAreRefused(t *testing.T) {
	good := fetchtest.Chart("redis", "1.0.0", nil)
	for why, build := range map[string]func(*fetchtest.Registry, *v1.Manifest){
		"an image":         func(s *fetchtest.Registry, m *v1.Manifest) { m.Config.MediaType = types.OCIConfigJSON },
		"no archive":       func(_ *fetchtest.Registry, m *v1.Manifest) { m.Layers = []v1.Descriptor{} },
		"two archives":     func(_ *fetchtest.Registry, m *v1.Manifest) { m.Layers = append(m.Layers, m.Layers[0]) },
		"a layer of files": func(_ *fetchtest.Registry, m *v1.Manifest) { m.Layers[0].MediaType = types.OCILayer },
		"an archive elsewhere": func(_ *fetchtest.Registry, m *v1.Manifest) {
			m.Layers[0].URLs = []string{"https://example.com/redis.tgz"}
		},
		"a path as a digest": func(_ *fetchtest.Registry, m *v1.Manifest) { m.Layers[0].Digest.Hex = "../../x" },
		"another chart": func(s *fetchtest.Registry, m *v1.Manifest) {
			m.Layers[0] = s.Blob("charts/redis", fetchtest.ChartContent, fetchtest.Chart("other", "1.0.0", nil))
		},
		"another version": func(s *fetchtest.Registry, m *v1.Manifest) {
			m.Layers[0] = s.Blob("charts/redis", fetchtest.ChartContent, fetchtest.Chart("redis", "2.0.0", nil))
		},
		"more than 20 MiB": func(s *fetchtest.Registry, m *v1.Manifest) {
			m.Layers[0] = s.Blob("charts/redis", fetchtest.ChartContent, append(good, make([]byte, 20<<20)...))
		},
	} {
		t.Run(why, func(t *testing.T) {
			server := fetchtest.ServeRegistry(t)
			manifest := v1.Manifest{
				SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: server.Blob("charts/redis", fetchtest.ChartConfig, []byte("{}")),
				Layers: []v1.Descriptor{server.Blob("charts/redis", fetchtest.ChartContent, good)},
			}
			build(server, &manifest)
			server.Manifest("charts/redis", "1.0.0", manifest.MediaType, manifest)
			if _, _, err := fetchInto(t, client(t), inRegistry(server, "redis", "1.0.0")); !isRefused(err) {
				t.Errorf("got %v", err)
			}
		})
	}
	server := fetchtest.ServeRegistry(t)
	server.Index("charts/redis", "1.0.0", server.Chart("charts/redis", "inner", good))
	if _, _, err := fetchInto(t, client(t), inRegistry(server, "redis", "1.0.0")); !isRefused(err) {
		t.Errorf("an index: got %v", err)
	}
}

// TestChartNamesThatLeadOutAreRefusedInRegistries (V06): A chart's name becomes a part of a URL in a registry.
func TestChartNamesThatLeadOutAreRefusedInRegistries(t *testing.T) {
	server := fetchtest.ServeRegistry(t)
	for _, name := range []string{
		".", "..", "../x", "a/b", "a\x00", strings.Repeat("a", 300), "", "a:b", "a@b", "a?b", "a#b", "a b", "A", "a%2fb", "a:1.0.0@sha256", "-a",
	} {
		if _, err := client(t).Resolve(t.Context(), inRegistry(server, name, "1.0.0")); !isRefused(err) {
			t.Errorf("name %q: got %v", name, err)
		}
	}
	for _, version := range []string{"", "..", "../x", "1.0.0/x", "1.0.0@sha256:00", "1.0.0?x", "1.0.0 ", strings.Repeat("1", 129), "sha256:00"} {
		if _, err := client(t).Resolve(t.Context(), inRegistry(server, "redis", version)); !isRefused(err) {
			t.Errorf("version %q: got %v", version, err)
		}
	}
	for _, url := range []string{
		"oci://", "oci:///charts", "oci:charts", "oci://registry/charts", "oci://u:canary@" + server.Host + "/charts", "oci://" + server.Host + "/a:b",
		"oci://" + server.Host + "/a@b", "oci://" + server.Host + "/../a", "oci://" + server.Host + "/a?b", "oci://" + server.Host + "/a#b",
		"oci://" + server.Host + "/A", "oci://-x/a", "OCI://" + server.Host + "/a",
	} {
		reference := inRegistry(server, "redis", "1.0.0")
		reference.Location = helmrepo.Location{URL: url, Chart: "redis", Version: "1.0.0"}
		if _, err := client(t).Resolve(t.Context(), reference); !isRefused(err) || strings.Contains(err.Error(), "canary") {
			t.Errorf("URL %q: got %v", url, err)
		}
	}
	if seen := server.Requests(); len(seen) != 0 {
		t.Errorf("names that are refused cost requests: %v", seen)
	}
}

// TestRegistryCredentialsStayWithTheRegistry (V10): Credentials of a chart's registry are sent to it and to its token
// service, and not to its storage. The registry, its token service and the storage are three hosts.
func TestRegistryCredentialsStayWithTheRegistry(t *testing.T) {
	packed := fetchtest.Chart("redis", "1.0.0", nil)
	storage := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(packed) }))
	server := fetchtest.ServeRegistry(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch name, word, _ := r.BasicAuth(); {
			case name != "u" || word != "canary":
				w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
				w.WriteHeader(http.StatusUnauthorized)
			case strings.Contains(r.URL.Path, "/blobs/"):
				http.Redirect(w, r, storage.URL+"/x", http.StatusTemporaryRedirect)
			default:
				next.ServeHTTP(w, r)
			}
		})
	})
	server.Chart("charts/redis", "1.0.0", packed)
	reference := inRegistry(server, "redis", "1.0.0")
	reference.Credentials.CA = append(reference.Credentials.CA, storage.CA...)
	config := fmt.Appendf(nil, `{"auths": {%q: {"username": "u", "password": "canary"}}}`, server.Host)
	for why, credentials := range map[string]fetch.Credentials{
		"user and password": {Username: "u", Password: "canary"}, "a docker config": {DockerConfig: config},
	} {
		credentials.CA = reference.Credentials.CA
		reference.Credentials = credentials
		if _, _, err := fetchInto(t, client(t), reference); err != nil {
			t.Errorf("%s: %v", why, err)
		}
	}
	for _, seen := range storage.Requests() {
		if seen.Header.Get("Authorization") != "" {
			t.Errorf("the storage got %v", seen.Header)
		}
	}
}

func isMissing(err error) bool {
	var missing *fetch.NotFoundError
	return errors.As(err, &missing)
}
