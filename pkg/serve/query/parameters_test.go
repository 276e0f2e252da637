package query

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unsafe"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
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

// Red when one wrong request gets several answers.
func TestAWrongRequestHasOneAnswer(t *testing.T) {
	t.Parallel()
	route, _, err := find(http.MethodGet, pathInstallations)
	if err != nil {
		t.Fatal(err)
	}
	for raw, says := range map[string]string{
		"namespace=N&addon=A&sort=x":      `namespace: "N"`,
		"x=1&w=1&y=1&z=1&v=1":             "v: there is no such parameter",
		"addon=a&addon=b&state=x&state=y": "addon: it is given",
	} {
		for range 50 {
			if _, err := newQueries().read(raw, route); err == nil || !strings.HasPrefix(err.Error(), says) {
				t.Fatalf("%s: %v, want %s", raw, err, says)
			}
		}
	}
}

// Red when a set is planned that no API server accepts, so that its items and groups have no bound, or when a file without a type is
// refused.
func TestSetsOfPreviewsHaveTheBoundsOfTheirKind(t *testing.T) {
	t.Parallel()
	read := func(spec string) (*v1.AddonSet, error) {
		text := `{"apiVersion":"kubermatic.k8c.io/v1","kind":"AddonSet","metadata":{"name":"tools"},"spec":` + spec + `}`
		return setOf(httptest.NewRequest(http.MethodPost, "/", strings.NewReader(text)), "tools")
	}
	item := func(at int) string { return fmt.Sprintf(`{"name":"i%d","addonRef":{"name":"web"}}`, at) }
	const rest = `"clusterSelector":{},"rollout":{"groups":[{"name":"all","clusterSelector":{}}],"maxConcurrency":"10%"}}`
	made, err := read(`{"addons":[` + item(0) + `],` + rest)
	if err != nil || made.Spec.Type != v1.AddonSetCustom {
		t.Fatalf("a set without a type: %v (%v)", made, err)
	}
	var many []string
	for at := range 65 {
		many = append(many, item(at))
	}
	for why, spec := range map[string]string{
		"too many items": `{"addons":[` + strings.Join(many, ",") + `],` + rest,
		"a wrong name":   `{"addons":[{"name":"W","addonRef":{"name":"web"}}],` + rest,
		"no selector":    `{"addons":[` + item(0) + `]}`,
		"too many groups": `{"clusterSelector":{},"rollout":{"groups":[` + strings.TrimSuffix(strings.Repeat(
			`{"name":"g","clusterSelector":{}},`, 65), ",") + `]}}`,
	} {
		var refused *ParameterError
		if _, err := read(spec); !errors.As(err, &refused) || !strings.Contains(err.Error(), "addonsets.spec") {
			t.Errorf("%s: %v", why, err)
		}
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
