package query

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unsafe"

	"github.com/trellis-addons/trellis/pkg/catalogue"
)

func TestPlatformVersionParameter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1.36.3": "1.36.3", "v1.36.3-gke.100": "1.36.3", "1.36.3+k3s1": "1.36.3", "1.36.3 k3s1": "1.36.3", "1.36": "1.36.0",
		"v2.31.0-3-g2974df5": "2.31.0", "v1.37.0-rc.1": "1.37.0-rc.1",
		"": "", "1": "", "latest": "", "1.36.3\n": "", "1.36.3<script>": "", "99999999999999999999.1.0": "", "1.36.3\x00": "",
		strings.Repeat("1", 129): "", "1.36." + strings.Repeat("1", 200): "", "٣.٣.٣": "",
	} {
		got, err := platformVersion("k8sVersion", text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q and error %v, want %q", text, got, err, want)
		}
	}
}

func TestBearer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Bearer abc": "abc", "bearer abc": "abc", "BEARER a.b-c_d~e+f/g==": "a.b-c_d~e+f/g==",
		"": "", "abc": "", "Bearer": "", "Bearer ": "", "Bearer  abc": "", "Bearer a b": "", "Bearer a\tb": "", "Bearer ä": "",
		"Basic abc": "", "Bearer " + strings.Repeat("a", mostToken+1): "",
	} {
		got, err := bearer(http.Header{"Authorization": {text}})
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q and error %v, want %q", text, got, err, want)
		}
	}
	if _, err := bearer(http.Header{"Authorization": {"Bearer a", "Bearer b"}}); err == nil {
		t.Error("two tokens are taken")
	}
}

// Red when parameters that are kept keep the request line that they came from.
func TestKeptParametersHaveTextsOfTheirOwn(t *testing.T) {
	t.Parallel()
	line, asked := strings.Repeat("x", mostHeaders)+"search=web", newQueries()
	raw := line[mostHeaders:]
	route, _, err := find(http.MethodGet, pathInstallations)
	if err != nil {
		t.Fatal(err)
	}
	read, err := asked.read(raw, route)
	if err != nil || read.rows.search != "web" {
		t.Fatalf("the search is %q (%v)", read.rows.search, err)
	}
	if unsafe.StringData(read.rows.search) == unsafe.StringData(raw[len("search="):]) {
		t.Error("the search is a part of the request line")
	}
}

func TestShownIsShort(t *testing.T) {
	t.Parallel()
	if got := shown(strings.Repeat("ä", 100)); len(got) > mostShown+3 || strings.ContainsRune(got, '\uFFFD') {
		t.Errorf("got %q", got)
	}
}

func TestTakesGzip(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"gzip": true, "br, GZIP ;q=0.1": true, "*": true, "gzip;q=1.000": true, "gzip;x=0": true,
		"": false, "identity": false, "gzip;q=0": false, "gzip; q=0.0": false, "xgzip": false, "*;q=0": false, "br;q=1, gzip;q=0": false,
	} {
		if got := acceptsGzip(http.Header{"Accept-Encoding": {text}}); got != want {
			t.Errorf("%q: got %t, want %t", text, got, want)
		}
	}
}

// FuzzParameters feeds what comes from outside. Whatever it is, the outcome is a platform that
// decides like the text did, or a refusal that repeats little of it.
func FuzzParameters(f *testing.F) {
	for _, seed := range []string{
		"k8sVersion=1.36.3", "kkpVersion=v2.31.0-3-g2974df5&k8sVersion=v1.36.3%2Bk3s1&explain=true", "k8sVersion=1.36.3+k3s1",
		"k8sVersion=%zz", "k8sVersion=1;explain=true", "&&&", "k8sVersion=1.36.3&k8sVersion=1.37.0", "explain=maybe", "=", "%00=%ff",
		"k8sVersion=1.37.0-rc.1", "k8sVersion=" + strings.Repeat("9", 500),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		values, err := parameters(raw, "kkpVersion", "k8sVersion", "explain")
		if err == nil {
			var key pair
			if key, err = asked(values, true); err == nil {
				checkPair(t, raw, key)
				return
			}
		}
		refusal, ok := errors.AsType[*ParameterError](err)
		if code, _ := refusal.code(); !ok || code != http.StatusBadRequest {
			t.Fatalf("%q: got %v, want a ParameterError", raw, err)
		}
		if len(err.Error()) > 400 {
			t.Fatalf("%q: the refusal is long: %q", raw, err)
		}
	})
}

func checkPair(t *testing.T, raw string, key pair) {
	t.Helper()
	given, err := url.ParseQuery(raw)
	if err != nil {
		t.Fatalf("%q is taken and is no query: %v", raw, err)
	}
	asCame, ok := catalogue.PlatformVersion(strings.ReplaceAll(given.Get("k8sVersion"), " ", "+"))
	if !ok || asCame.String() != key.k8s {
		t.Fatalf("%q: reads %q, and the version says %v", raw, key.k8s, asCame)
	}
	if again, err := platformVersion("k8sVersion", key.k8s); err != nil || again != key.k8s {
		t.Fatalf("%q: %q is not canonical: %q, %v", raw, key.k8s, again, err)
	}
}

// FuzzPath: a path finds a documented route or nothing, and its parts are those of the path.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"/api/v1/addons", "/api/v1/addons/web/versions/1.0.0", "//", "", "/api/v1/namespaces//addons", "/%2f"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		found, parts, err := find(http.MethodGet, path)
		if err != nil {
			return
		}
		filled := found.path
		for name, part := range parts {
			filled = strings.Replace(filled, "{"+name+"}", part, 1)
		}
		if filled != path {
			t.Fatalf("%q was taken for %q with %q", path, found.path, parts)
		}
	})
}
