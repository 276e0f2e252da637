package components

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/hack/release/chart"
	"github.com/trellis-addons/trellis/test/binaries"
)

// Red when an earlier series is left out, which clusterctl looks for before an upgrade, or is there twice.
func TestMetadataHasEverySeries(t *testing.T) {
	got, err := Metadata([]string{"1.9.1", "1.9.0", "1.10.0-rc.1", "0.1.0"})
	want := "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n" +
		"- major: 1\n  minor: 10\n  contract: v1beta2\n- major: 1\n  minor: 9\n  contract: v1beta2\n- major: 0\n  minor: 1\n  contract: v1beta2\n"
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := Metadata([]string{"latest"}); err == nil {
		t.Error("latest is taken for a version")
	}
}

// Red when a text goes out of which clusterctl would replace a part, or refuse all of it.
func TestVariablesAreRefused(t *testing.T) {
	for _, text := range []string{"a ${NAME} b", "${ NAME }", "a$$b"} {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": text}}}
		if _, err := write([]*unstructured.Unstructured{object}); !errors.Is(err, ErrVariable) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// read reads a chart of the checkout as that of a release, and gives the folder with KKP's kinds besides.
func read(t *testing.T, name string) (one chart.Chart, kkp string) {
	t.Helper()
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	one, err = chart.Read(filepath.Join(root, "charts", name), "1.2.3", chart.Image{Repository: "example.com/manager"})
	if err != nil {
		t.Fatal(err)
	}
	return one, filepath.Join(root, "deploy", "standalone", "crds")
}

// Red when clusterctl gets a Job that only Helm knows when to run.
func TestWhatHelmRunsIsLeftOut(t *testing.T) {
	seed, kkp := read(t, "trellis-seed")
	text, err := Provider([]chart.Chart{seed}, kkp)
	if err != nil || strings.Contains(text, "helm.sh/hook") || strings.Contains(text, "kind: Job") || !strings.Contains(text, "kind: Deployment") {
		t.Errorf("the components have what Helm runs, or no manager: %v", err)
	}
}

// Each manager does what a management cluster is for: Clusters are Cluster API's, and KKP is not there. Red when a chart has the other's
// values or none, when an upgrade would be held, or when rights are asked for that KKP's Clusters alone take.
func TestEachChartHasItsOwnValues(t *testing.T) {
	reported := []string{"--standalone", "--cluster-kinds", "--cluster-api-providers", "--allow-cluster-cidrs", "--hold-upgrades"}
	for name, want := range map[string][]string{
		"trellis-master": {"--standalone"},
		"trellis-seed": {
			"--cluster-kinds=cluster-api", "--cluster-api-providers=kubeadmcontrolplanes.controlplane.cluster.x-k8s.io", "--hold-upgrades=false",
		},
	} {
		one, kkp := read(t, name)
		text, err := Provider([]chart.Chart{one}, kkp)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(text) {
			flag := strings.TrimPrefix(strings.TrimSpace(line), "- ")
			if before, _, _ := strings.Cut(flag, "="); slices.Contains(reported, before) {
				got = append(got, flag)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("flags of %s (-want +got):\n%s", name, diff)
		}
		if strings.Contains(text, "- clusters/status\n") {
			t.Errorf("%s writes the status of KKP's Clusters", name)
		}
	}
}

// Red when a chart that is renamed is rendered with no values at all.
func TestAChartWithoutValuesIsRefused(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"Chart.yaml":  "apiVersion: v2\nname: other\nversion: 1.0.0\nappVersion: 1.0.0\nkubeVersion: '>= 1.34.0-0'\n",
		"values.yaml": "image:\n  repository: a\n  digest: b\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other, err := chart.Read(folder, "1.2.3", chart.Image{})
	if err != nil {
		t.Fatal(err)
	}
	_, kkp := read(t, "trellis-seed")
	if _, err := Provider([]chart.Chart{other}, kkp); err == nil || !strings.Contains(err.Error(), `"other"`) {
		t.Errorf("got %v", err)
	}
}

// clusterctl refuses an image whose name has no host ("repository name must be canonical"). Red when one goes out as the charts have it, or gets
// a second host.
func TestImagesHaveAHost(t *testing.T) {
	for image, want := range map[string]string{
		"trellis-addons/manager:1.2.3@sha256:ab": "docker.io/trellis-addons/manager:1.2.3@sha256:ab",
		"manager:1.2.3":                          "docker.io/library/manager:1.2.3",
		"registry.example/path/manager:1":        "registry.example/path/manager:1",
		"localhost/manager":                      "localhost/manager",
		"registry:5000/manager":                  "registry:5000/manager",
	} {
		object := &unstructured.Unstructured{Object: map[string]any{
			"kind": "Deployment", "spec": map[string]any{"template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": "manager", "image": image}},
			}}},
		}}
		if err := canonical([]*unstructured.Unstructured{object}); err != nil {
			t.Fatal(err)
		}
		containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]any{map[string]any{"name": "manager", "image": want}}, containers); diff != "" {
			t.Errorf("%s (-want +got):\n%s", image, diff)
		}
	}
}
