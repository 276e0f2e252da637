package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/test/rendering"
)

func TestMain(m *testing.M) { rendering.Main(m) }

const good = `- name: web
  versions:
  - version: "1.0.0"
    constraints: {k8sVersion: ">= 1.34"}
    template: {method: go-template}
    source: {git: {remote: "https://git.example.com/addons.git", ref: {tag: "1.0.0"}, path: web}}
`

// A folder is taken or refused as the manager would, with file and line. Red when a problem is not told, or its place is another.
func TestFoldersAreReadAsTheManagerReadsThem(t *testing.T) {
	replaced := func(part, by string) string { return strings.Replace(good, part, by, 1) }
	for _, test := range []struct {
		why, text string
		kind      v1.CatalogueType
		says      string
		refused   bool
	}{
		{"what is right", good, v1.CatalogueCustom, "web 1.0.0\n", false},
		{"a range that can't be read", replaced(">= 1.34", ">= newest"), v1.CatalogueCustom, "catalogue.yaml line 4", true},
		{"an unknown field", replaced("template:", "templates:"), v1.CatalogueCustom, "catalogue.yaml line 5: ", true},
		{
			"Secrets of the hub",
			replaced(
				"go-template}", "go-template, access: [{name: hub, rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]}]}",
			),
			v1.CatalogueCustom, "catalogue.yaml line 5", true,
		},
		{"secrets in a Custom one", replaced("go-template}", "go-template, clusterSecrets: true}"), v1.CatalogueCustom, "clusterSecrets", true},
		{"secrets in a Core one", replaced("go-template}", "go-template, clusterSecrets: true}"), v1.CatalogueCore, "web 1.0.0\n", false},
	} {
		var reported strings.Builder
		_, err := run(&reported, fstest.MapFS{"catalogue.yaml": {Data: []byte(test.text)}}, test.kind)
		if (err != nil) != test.refused || !strings.Contains(reported.String(), test.says) {
			t.Errorf("%s: %v, and it tells:\n%s", test.why, err, reported.String())
		}
	}
	for why, folder := range map[string]fstest.MapFS{"nothing": {}, "no manifests": {"README.md": {}}} {
		if _, err := run(&strings.Builder{}, folder, v1.CatalogueCustom); err == nil {
			t.Errorf("a folder with %s is taken", why)
		}
	}
	if _, err := run(&strings.Builder{}, fstest.MapFS{"catalogue.yaml": {Data: []byte(good)}}, "core"); err == nil {
		t.Error("an unknown type is taken")
	}
}

// What can't be fetched is told by add-on and version, each source is asked for once, and a source that
// needs a Secret is no mistake. What it renders to is looked at too.
// Red when a source is not looked at or rendered, or ends the check.
func TestSourcesAreLookedAt(t *testing.T) {
	charts := fetchtest.ServeCharts(t)
	authorities := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(authorities, charts.CA, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", authorities) // it is read once, here
	charts.Add("web", "1.0.0", map[string]string{"templates/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"})
	charts.Add("broken", "1.0.0", map[string]string{"templates/x.yaml": "\n{{ if }}\n"})
	charts.Add("host", "1.0.0", map[string]string{"templates/x.yaml": `{{ required "set host" .Values.host }}`})
	version := func(name, chart, chartVersion string, secret *v1.LocalReference) v1.AddonVersion {
		return v1.AddonVersion{
			Version: name, Template: &v1.Template{Method: v1.MethodHelm},
			Source: &v1.Source{Helm: &v1.HelmSource{URL: charts.URL, Chart: chart, Version: chartVersion, SecretRef: secret}},
		}
	}
	insecure := version("5.0.0", "web", "1.0.0", nil)
	insecure.Source.Helm.URL = "http://charts.example.com"
	fine := []v1.AddonVersion{
		version("1.0.0", "web", "1.0.0", nil), version("1.0.1", "web", "1.0.0", nil),
		version("4.0.0", "web", "1.0.0", &v1.LocalReference{Name: "pull"}), {Version: "6.0.0"},
		version("7.0.0", "host", "1.0.0", nil),
	}
	var reported strings.Builder
	if err := checkSources(t.Context(), &reported, []v1.Addon{{Name: "web", Versions: fine}}); err != nil {
		t.Errorf("%v:\n%s", err, reported.String())
	}
	if asked := charts.Count(http.MethodGet, "/web-1.0.0.tgz"); asked != 1 {
		t.Errorf("a chart was fetched %d times", asked)
	}
	wrong := []v1.AddonVersion{
		version("2.0.0", "wep", "1.0.0", nil), version("3.0.0", "web", "1.0.1", nil), insecure, version("8.0.0", "broken", "1.0.0", nil),
	}
	if err := checkSources(t.Context(), &reported, []v1.Addon{{Name: "web", Versions: wrong}}); !errors.Is(err, errSources) {
		t.Errorf("error %v", err)
	}
	for _, want := range []string{
		`web 2.0.0: chart "wep"`, `web 3.0.0: chart "web" version "1.0.1"`,
		`web 4.0.0: not checked: it needs Secret "pull"`, "web 5.0.0: http://charts.example.com",
		"web 7.0.0: it can't be rendered without an installation: ", "web 8.0.0: broken/templates/x.yaml:2: ",
		"3 found, 0 wrong, 1 not checked, 1 not rendered", "0 found, 4 wrong, 0 not checked, 0 not rendered",
	} {
		if !strings.Contains(reported.String(), want) {
			t.Errorf("it does not tell %q:\n%s", want, reported.String())
		}
	}
}
