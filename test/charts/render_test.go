package charts

import (
	"bytes"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// namespace is the platform namespace that the charts are rendered for.
const namespace = "kubermatic"

// rendering is one chart with values.
type rendering struct {
	chart, why string
	values     map[string]any
}

func (r rendering) String() string { return r.chart + ", " + r.why }

// certManager keeps the webhooks' certificate in some renderings.
var certManager = map[string]any{"webhook": map[string]any{"certManager": map[string]any{"enabled": true}}}

var renderings = []rendering{
	{chart: "trellis-master", why: "as it is"},
	{chart: "trellis-master", why: "standalone", values: map[string]any{
		"standalone": map[string]any{"enabled": true, "kkpVersion": "2.31.0"}, "workerName": "lab",
		"sources":      map[string]any{"mirrors": []any{"https://git.example.com=https://mirror.example.com/git"}},
		"nodeSelector": map[string]any{"kubernetes.io/os": "linux"}, "imagePullSecrets": []any{map[string]any{"name": "pull"}},
	}},
	{chart: "trellis-seed", why: "as it is"},
	{chart: "trellis-seed", why: "standalone", values: map[string]any{
		"standalone": map[string]any{"enabled": true}, "driftInterval": "10s", "workerName": "lab", "allowPrereleases": true,
		"sources": map[string]any{"allowCIDRs": []any{"10.0.0.0/8", "fd00::/8"}, "allowInsecure": true, "check": false,
			"mirrors": []any{"quay.io/team=mirror.example.com"}},
		"tolerations": []any{map[string]any{"operator": "Exists"}},
		"images":      map[string]any{"mirrors": []any{"docker.io=mirror.example.com/hub", "quay.io=mirror.example.com"}, "pullSecret": "mirror"},
		"addonVariables": map[string]any{
			"openvpn": map[string]any{"NodeAccessNetwork": "10.1.0.0/16"}, "dns": map[string]any{"domain": "x, y"},
		},
		"providerKinds": []any{
			map[string]any{"group": "storage.example.com", "kind": "BackupTarget", "resource": "backuptargets"},
		},
		"query": map[string]any{
			"tlsSecret": "query-tls", "audiences": []any{"trellis"}, "service": map[string]any{"type": "LoadBalancer", "port": 8443},
		},
		"clusterAPI": map[string]any{
			"kinds": []any{"kkp", "cluster-api"}, "allowCIDRs": []any{"127.0.0.0/8"}, "holdUpgrades": true, "upgradeHoldTimeout": "2h",
		},
		"webhook": map[string]any{"certManager": map[string]any{
			"enabled": true, "issuerRef": map[string]any{"kind": "ClusterIssuer", "name": "corporate"},
		}},
	}},
	{chart: "trellis-master", why: "with cert-manager", values: certManager},
	{chart: "trellis-master", why: "with every setting", values: everySetting},
	{chart: "trellis-seed", why: "with every setting", values: everySetting},
	{chart: "trellis-seed", why: "with agents", values: withAgents},
	{chart: "trellis-seed", why: "without webhooks", values: map[string]any{
		"webhook": map[string]any{"enabled": false}, "crds": map[string]any{"upgrade": false}, "removalGuard": map[string]any{"enabled": false},
	}},
}

// load reads a chart of the checkout.
func load(t *testing.T, name string) *chart.Chart {
	t.Helper()
	loaded, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// render gives the chart's CRDs and objects, in the order of their files.
func render(t *testing.T, r rendering) (crds, objects []*unstructured.Unstructured) {
	t.Helper()
	crds, objects, err := Render(r.chart, namespace, r.values)
	if err != nil {
		t.Fatalf("rendering %s: %v", r, err)
	}
	return crds, objects
}

func renderFiles(loaded *chart.Chart, values map[string]any) (map[string]string, error) {
	return renderLoaded(loaded, namespace, values)
}

func TestValuesSchemaRefusesMistakes(t *testing.T) {
	mistakes := map[string]map[string]any{
		"unknown key":     {"replica": 2},
		"unknown sub-key": {"image": map[string]any{"repository": "x", "tga": "1"}},
		"wrong type":      {"replicas": "two"},
		"no image":        {"image": map[string]any{"repository": ""}},
		"no namespace":    {"catalogueNamespace": "Upper_Case"},
		"no digest":       {"image": map[string]any{"repository": "x", "digest": "0123"}},
		"no flag":         {"extraArgs": []any{"v=1"}},
		"no toleration":   {"tolerations": []any{map[string]any{"keys": "a"}}},
		"no resources":    {"resources": map[string]any{"limit": map[string]any{"memory": "1Gi"}}},
		"no label":        {"commonLabels": map[string]any{"a": 1}},
		"no web page":     {"metrics": map[string]any{"prometheusRule": map[string]any{"runbookURL": "docs/spec/alerts.md"}}},
		"no volume":       {"extraVolumes": []any{map[string]any{"secret": "a"}}},
	}
	for _, name := range []string{"trellis-master", "trellis-seed"} {
		for why, values := range mistakes {
			if _, err := renderFiles(load(t, name), values); err == nil {
				t.Errorf("%s accepts values with %s: %v", name, why, values)
			}
		}
	}
}

func TestNotesRender(t *testing.T) {
	for _, r := range renderings {
		files, err := renderFiles(load(t, r.chart), r.values)
		if err != nil {
			t.Fatal(err)
		}
		notes := files[r.chart+"/templates/NOTES.txt"]
		words := "helm test " + r.chart
		if r.why == "without webhooks" { // and without Jobs
			words = "helm show crds <chart> | kubectl apply --server-side --force-conflicts -f -"
		}
		if !strings.Contains(notes, words) {
			t.Errorf("the notes of %s do not have %q:\n%s", r, words, notes)
		}
	}
}

func TestChartsShareTheCRDsOfTheMaster(t *testing.T) {
	master, seed := load(t, "trellis-master").CRDObjects(), load(t, "trellis-seed").CRDObjects()
	if len(master) != 2 || len(seed) != 3 {
		t.Fatalf("the master's chart has %d CRDs and the seed's %d, expected 2 and 3", len(master), len(seed))
	}
	theirs := map[string][]byte{}
	for _, crd := range seed {
		theirs[crd.File.Name] = crd.File.Data
	}
	for _, crd := range master {
		if !bytes.Equal(crd.File.Data, theirs[crd.File.Name]) {
			t.Errorf("both charts have %s, and not the same: run `make generate`", crd.File.Name)
		}
	}
}
