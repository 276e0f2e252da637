package render_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/trellis-addons/trellis/cmd/wiring/contents"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/cli/catalogue/render"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/golden"
	"github.com/trellis-addons/trellis/test/rendering"
)

func TestMain(m *testing.M) { rendering.Main(m) }

// run renders without a kubeconfig.
func run(t *testing.T, arguments ...string) (out, errors string, code int) {
	t.Helper()
	var written, told bytes.Buffer
	tool := cli.NewTool(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &written, ErrOut: &told})
	verb := render.Command(func() (render.Local, error) { return contents.NewLocal() })
	code = cli.Run(t.Context(), tool, append([]string{"render", "--kubeconfig", "/none"}, arguments...), verb)
	return written.String(), told.String(), code
}

// Red when a fact of the Cluster, a layer of values or an object is missing, or a version that does not fit is rendered.
func TestAFolderIsRenderedForAClusterInAFile(t *testing.T) {
	for file, arguments := range map[string][]string{
		"kkp.txt":  {"testdata/catalogue.yaml", "web", "--cluster-file", "testdata/kkp.yaml", "--set", "replicas=3"},
		"capi.txt": {"testdata/catalogue.yaml", "web@1.x", "--cluster-file", "testdata/capi.yaml"},
	} {
		out, errors, code := run(t, append(arguments, "--content", "testdata/web")...)
		if code != cli.ExitDone || errors != "" {
			t.Fatalf("%s: exit code %d: %s", file, code, errors)
		}
		golden.Match(t, "testdata/"+file, out)
	}
}

// Red when a source is not fetched, or an object of a hook is not printed.
func TestASourceIsFetched(t *testing.T) {
	charts := fetchtest.ServeCharts(t)
	authorities := filepath.Join(t.TempDir(), "ca.crt")
	expect.NoError(t, os.WriteFile(authorities, charts.CA, 0o600))
	t.Setenv("SSL_CERT_FILE", authorities) // it is read once, here
	charts.Add("web", "1.0.0", map[string]string{
		"templates/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {release: {{ .Release.Name }}, size: {{ .Values.size | quote }}}\n",
		"templates/y.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: hook, annotations: {helm.sh/hook: pre-install}}\n",
	})
	catalogue := filepath.Join(t.TempDir(), "catalogue.yaml")
	expect.NoError(t, os.WriteFile(catalogue, []byte("- name: web\n  versions:\n  - version: \"1.0.0\"\n    template: {method: helm}\n"+
		"    source: {helm: {url: \""+charts.URL+"\", chart: web, version: 1.0.0}}\n"), 0o600))
	out, errors, code := run(t, catalogue, "web", "--cluster-file", "testdata/kkp.yaml", "--set", "size=2")
	if code != cli.ExitDone || !strings.Contains(out, "size: \"2\"") || !strings.Contains(out, "release: web") || !strings.Contains(out, "kind: Secret") {
		t.Errorf("exit code %d, output %q, errors %q", code, out, errors)
	}
}

// Red when a wrong call is not one line, has another exit code, or has a value in it.
func TestWhatCanNotBeRenderedIsOneLine(t *testing.T) {
	empty, broken := t.TempDir(), t.TempDir()
	expect.NoError(t, os.WriteFile(filepath.Join(broken, "x.yaml"), []byte("a: {{ .Cluster.Nmae }}\n"), 0o600))
	noVersion := filepath.Join(t.TempDir(), "cluster.yaml")
	expect.NoError(t, os.WriteFile(noVersion, []byte("apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: elm}\n"), 0o600))
	const cluster = "testdata/kkp.yaml"
	for _, test := range []struct {
		why       string
		arguments []string
		code      int
		says      string
	}{
		{"no cluster", []string{"testdata/catalogue.yaml", "web"}, cli.ExitUsage, "cluster-file"},
		{"a file that is no Cluster", []string{"testdata/catalogue.yaml", "web", "--cluster-file", "testdata/catalogue.yaml"}, cli.ExitUsage, "neither a Cluster"},
		{"a Cluster without version", []string{"testdata/catalogue.yaml", "web", "--cluster-file", noVersion}, cli.ExitUsage, "not a semantic version"},
		{"a missing file", []string{"testdata/catalogue.yaml", "web", "--cluster-file", "none.yaml"}, cli.ExitUsage, "none.yaml"},
		{"a misspelt add-on", []string{"testdata/catalogue.yaml", "wbe", "--cluster-file", cluster}, cli.ExitNotFound, `did you mean "web"?`},
		{"a version that does not fit", []string{"testdata/catalogue.yaml", "web@2.0.0", "--cluster-file", cluster}, cli.ExitNo, ">= 1.38"},
		{"a source with a Secret", []string{"testdata/catalogue.yaml", "web@3.0.0", "--cluster-file", cluster}, cli.ExitNo, `Secret "login"`},
		{"a wrong field of the form", []string{
			"testdata/catalogue.yaml", "web", "--cluster-file", cluster, "--content", "testdata/web", "--set", "replicas=hidden",
		}, cli.ExitNo, "Replicas"},
		{"a folder that is missing", []string{"testdata/catalogue.yaml", "web", "--cluster-file", cluster, "--content", "none"}, cli.ExitUsage, "none"},
		{"no manifests", []string{"testdata/catalogue.yaml", "web", "--cluster-file", cluster, "--content", empty}, cli.ExitNo, "web"},
		{"a wrong template", []string{"testdata/catalogue.yaml", "web", "--cluster-file", cluster, "--content", broken}, cli.ExitNo, "x.yaml:1"},
	} {
		out, errors, code := run(t, test.arguments...)
		if code != test.code || out != "" || strings.Count(errors, "\n") != 1 || !strings.Contains(errors, test.says) || strings.Contains(errors, "hidden") {
			t.Errorf("%s: exit code %d, output %q, errors %q", test.why, code, out, errors)
		}
	}
}
