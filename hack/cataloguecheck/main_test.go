package main

import (
	"strings"
	"testing"
	"testing/fstest"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

const good = `- name: web
  versions:
  - version: "1.0.0"
    constraints: {k8sVersion: ">= 1.34"}
    template: {method: go-template}
    source: {git: {remote: "https://git.example.com/addons.git", ref: {tag: "1.0.0"}, path: web}}
`

// A folder is taken or refused as the manager would, with file and line. Red when a problem is not told, or its place is another.
func TestFoldersAreReadAsTheManagerReadsThem(t *testing.T) {
	for _, test := range []struct {
		why, text string
		kind      v1.CatalogueType
		says      string
		refused   bool
	}{
		{"what is right", good, v1.CatalogueCustom, "web 1.0.0\n", false},
		{"a range that can't be read", strings.Replace(good, ">= 1.34", ">= newest", 1), v1.CatalogueCustom, "catalogue.yaml line 3", true},
		{"an unknown field", strings.Replace(good, "template:", "templates:", 1), v1.CatalogueCustom, "catalogue.yaml line 5: ", true},
		{
			"Secrets of the hub",
			strings.Replace(good, "go-template}", "go-template, access: [{name: hub, rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]}]}", 1),
			v1.CatalogueCustom, "catalogue.yaml line 3", true,
		},
		{"secrets in a Custom one", strings.Replace(good, "go-template}", "go-template, clusterSecrets: true}", 1), v1.CatalogueCustom, "clusterSecrets", true},
		{"secrets in a Core one", strings.Replace(good, "go-template}", "go-template, clusterSecrets: true}", 1), v1.CatalogueCore, "web 1.0.0\n", false},
	} {
		var told strings.Builder
		err := run(&told, fstest.MapFS{"catalogue.yaml": {Data: []byte(test.text)}}, test.kind)
		if (err != nil) != test.refused || !strings.Contains(told.String(), test.says) {
			t.Errorf("%s: %v, and it tells:\n%s", test.why, err, told.String())
		}
	}
	for why, folder := range map[string]fstest.MapFS{"nothing": {}, "no manifests": {"README.md": {}}} {
		if err := run(&strings.Builder{}, folder, v1.CatalogueCustom); err == nil {
			t.Errorf("a folder with %s is taken", why)
		}
	}
	if err := run(&strings.Builder{}, fstest.MapFS{"catalogue.yaml": {Data: []byte(good)}}, "core"); err == nil {
		t.Error("an unknown type is taken")
	}
}
