package helmrepo_test

import (
	"archive/tar"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/helmrepo"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/test/long"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t testing.TB) *helmrepo.Source {
	t.Helper()
	network := outbound.New(outbound.Options{AllowCIDRs: fetchtest.Loopback})
	t.Cleanup(network.Close)
	return helmrepo.New(network)
}

func reference(server *fetchtest.Charts, chart, version string) fetch.Reference {
	return fetch.Reference{
		Location:    helmrepo.Location{URL: server.URL, Chart: chart, Version: fetch.Selector(version)},
		Credentials: fetch.Credentials{CA: server.CA},
	}
}

func fetchInto(t *testing.T, source *helmrepo.Source, reference fetch.Reference) (files map[string]string, digest string, err error) {
	t.Helper()
	into := fetchtest.Folder(t)
	revision, err := source.Resolve(t.Context(), reference)
	if err != nil {
		return nil, "", err
	}
	digest, err = source.Fetch(t.Context(), reference, revision, into)
	if beside, err := os.ReadDir(filepath.Dir(into)); err != nil || len(beside) != 1 {
		t.Errorf("beside the folder: %v, %v", beside, err)
	}
	return fetchtest.Files(t, into), digest, err
}

func isRefused(err error) bool {
	_, ok := errors.AsType[*fetch.RefusedError](err)
	return ok
}

func TestCharts(t *testing.T) {
	server := fetchtest.ServeCharts(t)
	digest := server.Add("redis", "1.2.0", map[string]string{"templates/x.yaml": "x"})
	server.Add("redis", "v1.3.0", nil)
	packed := fetchtest.Chart("nginx", "2.0.0", nil)
	server.Put("/deep/nginx.tgz", packed)
	server.List("nginx", "2.0.0", fetchtest.Digest(packed), server.URL+"/deep/nginx.tgz")
	server.List("nginx", "2.1.0", "", "deep/nginx.tgz")

	files, got, err := fetchInto(t, client(t), reference(server, "redis", "1.2.0"))
	want := map[string]string{"Chart.yaml": "apiVersion: v2\nname: redis\nversion: \"1.2.0\"\n", "templates/x.yaml": "x"}
	if diff := cmp.Diff(want, files); err != nil || got != digest || diff != "" {
		t.Errorf("got %s, %v, %s", got, err, diff)
	}
	if _, _, err := fetchInto(t, client(t), reference(server, "redis", "1.3.0")); err != nil {
		t.Errorf("a version with a v: %v", err)
	}
	if _, got, err = fetchInto(t, client(t), reference(server, "nginx", "2.0.0")); err != nil || got != fetchtest.Digest(packed) {
		t.Errorf("an absolute URL: %s, %v", got, err)
	}
	if _, _, err = fetchInto(t, client(t), reference(server, "nginx", "2.1.0")); !isRefused(err) {
		t.Errorf("an archive of another version: %v", err)
	}
}

func TestMissing(t *testing.T) {
	server := fetchtest.ServeCharts(t)
	for _, version := range []string{"1.0.0", "1.10.0", "1.9.0", "0.1.0", "2.0.0-rc.1", "latest", "1.2.0"} {
		server.Add("redis", version, nil)
	}
	for _, chart := range []string{"d", "c", "b", "a", "red", "my-redis", "kube-prometheus-stack"} {
		server.Add(chart, "1.0.0", nil)
	}
	for _, test := range []struct {
		why, chart, version, says string
	}{
		{"a slip", "rediss", "1.0.0", `chart "rediss" in ` + server.URL + " not found; nearest charts: redis, red, d, a, b"},
		{"a part of names", "prometheus", "1.0.0", "nearest charts: kube-prometheus-stack, a, b, c, d"},
		{"a version", "redis", "3.0.0", `chart "redis" version "3.0.0" in ` + server.URL +
			" not found; known versions: 2.0.0-rc.1, 1.10.0, 1.9.0, 1.2.0, 1.0.0"},
		{"a range is no version", "redis", "1.x", "known versions"},
	} {
		_, err := client(t).Resolve(t.Context(), reference(server, test.chart, test.version))
		if _, ok := errors.AsType[*fetch.NotFoundError](err); !ok || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v", test.why, err)
		}
	}
	source := client(t)
	_, used := source.Resolve(t.Context(), reference(server, "redis", "1.0.0"))
	if _, err := source.Resolve(t.Context(), reference(server, "redsi", "1.0.0")); used != nil || !strings.Contains(fmt.Sprint(err), "nearest charts: redis, ") {
		t.Errorf("beside one that is used: got %v, %v", used, err)
	}
	nowhere := reference(server, "redis", "1.0.0")
	nowhere.Location = helmrepo.Location{URL: server.URL + "/nowhere/", Chart: "redis", Version: "1.0.0"}
	_, err := client(t).Resolve(t.Context(), nowhere)
	if _, ok := errors.AsType[*fetch.NotFoundError](err); !ok {
		t.Errorf("a repository: got %v", err)
	}
}

func TestUnchangedIndexCostsNothing(t *testing.T) {
	server := fetchtest.ServeCharts(t)
	server.Add("redis", "1.0.0", nil)
	server.Add("nginx", "1.0.0", nil)
	source := client(t)
	resolve := func(chart, version string) {
		t.Helper()
		if _, err := source.Resolve(t.Context(), reference(server, chart, version)); err != nil {
			t.Fatal(err)
		}
	}
	conditions := func() (with, without int) {
		for _, seen := range server.Requests() {
			if seen.Header.Get("If-None-Match") != "" {
				with++
			} else {
				without++
			}
		}
		return with, without
	}
	for range 3 {
		resolve("redis", "1.0.0")
	}
	if with, without := conditions(); with != 2 || without != 1 {
		t.Errorf("%d conditional and %d whole requests", with, without)
	}
	resolve("nginx", "1.0.0") // was not decoded before
	resolve("redis", "1.0.0")
	if with, without := conditions(); with != 3 || without != 2 {
		t.Errorf("%d conditional and %d whole requests", with, without)
	}
	server.Add("redis", "1.1.0", nil)
	resolve("redis", "1.1.0")
	if _, err := source.Fetch(t.Context(), reference(server, "redis", "1.1.0"), fetch.Revision{Name: "1.1.0"}, fetchtest.Folder(t)); err != nil {
		t.Error(err)
	}
	if count := server.Count(http.MethodGet, "/index.yaml"); count != 6 {
		t.Errorf("the index was asked for %d times", count)
	}
}

// TestRepositoryCredentialsStayWithTheRepository (V10): Credentials of a Helm repository are not sent to other hosts
// that its index names.
func TestRepositoryCredentialsStayWithTheRepository(t *testing.T) {
	away := fetchtest.ServeCharts(t)
	away.Add("redis", "1.0.0", nil)
	home := fetchtest.ServeCharts(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if user, password, _ := r.BasicAuth(); user != "u" || password != "canary" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			if r.URL.Path == "/moved.tgz" {
				http.Redirect(w, r, away.URL+"/redis-1.0.0.tgz", http.StatusFound)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	home.List("redis", "1.0.0", "", away.URL+"/redis-1.0.0.tgz")
	home.List("moved", "1.0.0", "", "moved.tgz")
	home.Add("nginx", "1.0.0", nil)
	ask := func(chart string, hosts ...string) error {
		private := reference(home, chart, "1.0.0")
		private.Credentials = fetch.Credentials{
			Username: "u", Password: "canary", CA: append(append([]byte{}, home.CA...), away.CA...), Hosts: hosts,
		}
		_, _, err := fetchInto(t, client(t), private)
		return err
	}
	if err := ask("nginx"); err != nil {
		t.Errorf("at home: %v", err)
	}
	if err := ask("redis"); err != nil {
		t.Errorf("an archive on another host: %v", err)
	}
	if err := ask("moved"); !isRefused(err) { // the chart is named redis
		t.Errorf("a redirect to another host: %v", err)
	}
	for _, seen := range away.Requests() {
		if value := seen.Header.Get("Authorization"); value != "" {
			t.Errorf("the other host got %q", value)
		}
	}
	seen := len(away.Requests())
	if err := ask("redis", home.Listener.Addr().String(), away.Listener.Addr().String()); err != nil {
		t.Errorf("another host that the Secret names: %v", err)
	}
	if requests := away.Requests(); len(requests) != seen+1 || requests[seen].Header.Get("Authorization") == "" {
		t.Error("a host that the Secret names got no credentials")
	}
}

func TestIndexStaysOnItsHost(t *testing.T) {
	away := fetchtest.ServeCharts(t)
	away.Add("redis", "1.0.0", nil)
	home := fetchtest.ServeCharts(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, away.URL+"/index.yaml", http.StatusFound)
		})
	})
	moved := reference(home, "redis", "1.0.0")
	moved.Credentials.CA = append(append([]byte{}, home.CA...), away.CA...)
	if _, err := client(t).Resolve(t.Context(), moved); !isRefused(err) || len(away.Requests()) != 0 {
		t.Errorf("got %v", err)
	}
}

// TestChartWithAnotherDigestIsRefused (AC26): A chart whose digest is not that of the catalogue is refused.
func TestChartWithAnotherDigestIsRefused(t *testing.T) {
	server := fetchtest.ServeCharts(t)
	server.Put("/redis.tgz", fetchtest.Chart("redis", "1.0.0", nil))
	wrong := fetchtest.Digest([]byte("other"))
	server.List("redis", "1.0.0", wrong, "redis.tgz")
	files, _, err := fetchInto(t, client(t), reference(server, "redis", "1.0.0"))
	if !isRefused(err) || !strings.Contains(err.Error(), wrong) || len(files) != 0 {
		t.Errorf("got %v, %v", files, err)
	}
}

// TestDuplicateIndexEntriesAreRefused (V11): An index with two entries for one version is refused.
func TestDuplicateIndexEntriesAreRefused(t *testing.T) {
	server := fetchtest.ServeCharts(t)
	for _, version := range []string{"1.0.0", "1.0.0", "2.0.0", "v2.0.0", "v3.0.0", "3.0.0+a"} {
		server.Add("redis", version, nil)
	}
	for version, ok := range map[string]bool{"1.0.0": false, "2.0.0": true, "v2.0.0": true, "3.0.0": false, "3.0.0+a": true} {
		if _, err := client(t).Resolve(t.Context(), reference(server, "redis", version)); (err == nil) != ok || !ok && !isRefused(err) {
			t.Errorf("%s: got %v", version, err)
		}
	}
}

// TestChartNamesThatLeadOutAreRefused (V06): Chart names that are paths are refused before a path is built from them.
func TestChartNamesThatLeadOutAreRefused(t *testing.T) {
	server := fetchtest.ServeCharts(t)
	server.Add("redis", "1.0.0", nil)
	for _, name := range []string{".", "..", "../x", "a/b", "a\x00", strings.Repeat("a", 300), "", "-x", ".x", `a\b`, "a b", "ä"} {
		if _, err := client(t).Resolve(t.Context(), reference(server, name, "1.0.0")); !isRefused(err) {
			t.Errorf("as a reference, %q: got %v", name, err)
		}
		packed := fetchtest.Chart("redis", "1.0.0", map[string]string{"Chart.yaml": fmt.Sprintf("name: %q\nversion: 1.0.0\n", name)})
		server.Put("/redis-1.0.0.tgz", packed)
		plain := fetchtest.ServeCharts(t)
		plain.Put("/x.tgz", packed)
		plain.List("redis", "1.0.0", "", "x.tgz")
		if _, _, err := fetchInto(t, client(t), reference(plain, "redis", "1.0.0")); !isRefused(err) {
			t.Errorf("as Chart.yaml says, %q: got %v", name, err)
		}
	}
	if count := server.Count(http.MethodGet, "/index.yaml"); count != 0 {
		t.Errorf("a name that is refused cost %d requests", count)
	}
}

// TestHostileChartsAreRefused (AC31): Each archive of the hostile corpus, as a chart, is refused or stays within its
// folder and limits.
func TestHostileChartsAreRefused(t *testing.T) {
	long.Heavy(t)
	metadata := fetchtest.File{Header: tar.Header{Name: "top/Chart.yaml"}, Content: "name: top\nversion: 1.0.0\n"}
	for _, test := range fetchtest.Corpus() {
		if !test.Refused {
			continue // without Chart.yaml they are no charts
		}
		t.Run(test.Name, func(t *testing.T) {
			server := fetchtest.ServeCharts(t)
			server.Put("/top.tgz", test.Archive)
			server.List("top", "1.0.0", fetchtest.Digest(test.Archive), "top.tgz")
			_, _, err := fetchInto(t, client(t), reference(server, "top", "1.0.0"))
			if !isRefused(err) || !strings.Contains(err.Error(), `"top"`) && !strings.Contains(err.Error(), "top.tgz") {
				t.Errorf("got %v", err)
			}
			if err != nil && strings.Contains(err.Error(), "has none") { // the missing file was looked for: they were unpacked
				t.Errorf("unpacked before it was refused: %v", err)
			}
		})
	}
	for why, packed := range map[string][]byte{
		"no Chart.yaml": fetchtest.Archive(fetchtest.File{Header: tar.Header{Name: "top/x"}, Content: "x"}),
		"two folders":   fetchtest.Archive(metadata, fetchtest.File{Header: tar.Header{Name: "other/x"}, Content: "x"}),
		"a file beside": fetchtest.Archive(fetchtest.File{Header: tar.Header{Name: "x"}, Content: "x"}, metadata),
		"a large file": fetchtest.Archive(metadata,
			fetchtest.File{Header: tar.Header{Name: "top/x"}, Content: strings.Repeat("0123456789abcdef", 5<<16+1)}),
		"more than 20 MiB":            append(fetchtest.Archive(metadata), make([]byte, 20<<20)...),
		"Chart.yaml that is a folder": fetchtest.Archive(fetchtest.File{Header: tar.Header{Name: "top/Chart.yaml/x"}, Content: "x"}),
	} {
		server := fetchtest.ServeCharts(t)
		server.Put("/top.tgz", packed)
		server.List("top", "1.0.0", "", "top.tgz")
		if _, _, err := fetchInto(t, client(t), reference(server, "top", "1.0.0")); !isRefused(err) {
			t.Errorf("%s: got %v", why, err)
		}
	}
}

// TestNullsInChartYamlEndNothing (V05): Nulls in a Chart.yaml are errors or ignored, never a panic.
func TestNullsInChartYamlEndNothing(t *testing.T) {
	for _, content := range []string{
		"name: redis\nversion: 1.0.0\nmaintainers: [null]\ndependencies: [null]\n", "name: redis\nversion: 1.0.0\nkeywords: null\n",
	} {
		server := fetchtest.ServeCharts(t)
		server.Add("redis", "1.0.0", map[string]string{"Chart.yaml": content})
		if _, _, err := fetchInto(t, client(t), reference(server, "redis", "1.0.0")); err != nil {
			t.Errorf("%q: %v", content, err)
		}
	}
	for _, content := range []string{"", "null", "[]", "name: null\n", "name: [redis]\n", "&a [*a]", "name: redis\n", "\x00",
		"name: redis\nversion: {}\n", "name: redis\nversion: 1.0.0\nkeywords: [" + strings.Repeat("[],", 10_000) + "]\n"} {
		server := fetchtest.ServeCharts(t)
		server.Add("redis", "1.0.0", map[string]string{"Chart.yaml": content})
		if _, _, err := fetchInto(t, client(t), reference(server, "redis", "1.0.0")); !isRefused(err) {
			t.Errorf("%.100q: got %v", content, err)
		}
	}
}

// TestIndexThatNamesRegistrySaysWhatToSet: A registry that an index names is not used: its logins and tokens belong
// to another reference. The error names the reference to set instead.
func TestIndexThatNamesRegistrySaysWhatToSet(t *testing.T) {
	server := fetchtest.ServeCharts(t)
	for named, want := range map[string]string{
		"oci://registry.example.com/charts/x:1.0.0": `set source.helm.url to the registry itself, "oci://registry.example.com/charts"`,
		"oci://registry.example.com/x:1.0.0":        "set source.helm.url to the registry itself",
		"OCI://registry.example.com:5000/a/b/x":     `"oci://registry.example.com:5000/a/b"`,
		"oci:opaque":                                "set source.helm.url to the registry itself",
	} {
		server.Put("/index.yaml", fmt.Appendf(nil, "apiVersion: v1\nentries:\n  x:\n  - version: 1.0.0\n    urls: [%q]\n", named))
		if _, _, err := fetchInto(t, client(t), reference(server, "x", "1.0.0")); !isRefused(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", named, err)
		}
	}
}

func TestRefusedReferences(t *testing.T) {
	for why, helm := range map[string]helmrepo.Location{
		"plain http":   {URL: "http://127.0.0.1/charts", Chart: "redis", Version: "1.0.0"},
		"a password":   {URL: "https://u:canary@127.0.0.1/charts", Chart: "redis", Version: "1.0.0"},
		"a file":       {URL: "file:///charts", Chart: "redis", Version: "1.0.0"},
		"no version":   {URL: "https://127.0.0.1/charts", Chart: "redis"},
		"loopback":     {URL: "https://[::1]/charts", Chart: "redis", Version: "1.0.0"},
		"long version": {URL: "https://127.0.0.1/charts", Chart: "redis", Version: fetch.Selector(strings.Repeat("1", 200))},
	} {
		if _, err := client(t).Resolve(t.Context(), fetch.Reference{Location: helm}); !isRefused(err) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: got %v", why, err)
		}
	}
	server := fetchtest.ServeCharts(t)
	for why, url := range map[string]string{
		"a registry": "oci://127.0.0.1/redis", "a file": "file:///etc/passwd", "a password": "https://u:canary@127.0.0.1/x.tgz",
		"loopback": "https://[::1]/x.tgz", "plain http": "http://127.0.0.1/x.tgz",
	} {
		server.Put("/index.yaml", fmt.Appendf(nil, "apiVersion: v1\nentries:\n  x:\n  - version: 1.0.0\n    urls: [%q]\n", url))
		if _, _, err := fetchInto(t, client(t), reference(server, "x", "1.0.0")); !isRefused(err) || strings.Contains(err.Error(), "canary") {
			t.Errorf("an index that names %s: got %v", why, err)
		}
	}
}
