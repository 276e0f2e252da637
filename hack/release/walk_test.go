package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
)

// walk is an installation out of a folder of a release, with the programs that people have and nothing else.
type walk struct {
	folder, kubeconfig, home string
}

// run runs helm or kubectl in the folder of the release, with a text as its input.
func (w walk) run(t *testing.T, input, name string, arguments ...string) string {
	t.Helper()
	cache, err := binaries.Cache()
	expect.NoError(t, err)
	path, err := binaries.Find(cache, name, "")
	expect.NoError(t, err)
	command := exec.CommandContext(t.Context(), path, arguments...)
	command.Dir, command.Env, command.Stdin = w.folder, []string{"HOME=" + w.home, "KUBECONFIG=" + w.kubeconfig}, strings.NewReader(input)
	var output, complaints bytes.Buffer
	command.Stdout, command.Stderr = &output, &complaints
	if err := command.Run(); err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, arguments, err, output.String(), complaints.String())
	}
	return output.String()
}

// catalogues are the names of those in the platform's namespace.
func (w walk) catalogues(t *testing.T) []string {
	return strings.Fields(w.run(t, "", "kubectl", "get", "addoncatalogues.kubermatic.k8c.io", "-n", "kubermatic", "-o", "name"))
}

var crdName = regexp.MustCompile(`(?m)^  name: (\S+\.kubermatic\.k8c\.io)$`)

// The folder alone makes a platform on a bare API server, without KKP: the helm program itself lints the archives and installs them, they
// bear the version and run the images of this build, each object of theirs is there, and each kind of crds.yaml is served. Taken off again,
// what the chart keeps stays. No pods run here, so hooks stay out: test/charts has them. Red when a chart keeps its version, names another
// image or lacks a CRD, and when kkp-core goes with its release.
func TestTheFolderInstallsAPlatform(t *testing.T) {
	files, folder := released(t)
	c := connect(t, helmCluster)
	w := walk{folder, kubeconfig(t, helmCluster), t.TempDir()}
	w.run(t, "", "kubectl", "apply", "--server-side", "-f", "crds-standalone.yaml")
	settings := map[string][]string{
		"trellis-master": {"--set", "standalone.enabled=true,standalone.kkpVersion=2.31.0,coreCatalogue.enabled=true"},
		"trellis-seed":   {"--set", "standalone.enabled=true"},
		"trellis-web":    {"--set", "publicURL=https://addons.example.com", "--set-json", `seeds=[{"name":"a","server":"https://a","query":"https://b"}]`},
	}
	least := map[string]int{"trellis-master": 10, "trellis-seed": 10, "trellis-web": 5}
	for _, one := range charts {
		archive := one.name + "-" + version + ".tgz"
		w.run(t, "", "helm", "lint", "--strict", "--kube-version", binaries.Older, archive)
		install := []string{"install", "--no-hooks", one.name, archive, "--namespace", "kubermatic", "--create-namespace"}
		w.run(t, "", "helm", append(install, settings[one.name]...)...)
		loaded, err := loader.LoadFile(filepath.Join(folder, archive))
		expect.NoError(t, err)
		if loaded.Metadata.Version != version || loaded.Metadata.AppVersion != version {
			t.Errorf("%s is of version %s and appVersion %s", one.name, loaded.Metadata.Version, loaded.Metadata.AppVersion)
		}
		var manager appsv1.Deployment
		expect.Get(t, c, client.ObjectKey{Namespace: "kubermatic", Name: one.name}, &manager)
		if got, want := manager.Spec.Template.Spec.Containers[0].Image, imageOf(t, files, one.program); got != want {
			t.Errorf("%s runs %s, expected %s", one.name, got, want)
		}
		manifest := w.run(t, "", "helm", "get", "manifest", one.name, "--namespace", "kubermatic")
		there := w.run(t, manifest, "kubectl", "get", "-f", "-", "-o", "name")
		if got, want := strings.Count(there, "\n"), strings.Count("\n"+manifest, "\nkind: "); got != want || want < least[one.name] {
			t.Errorf("%s: %d of %d objects are there", one.name, got, want)
		}
	}
	served := strings.Fields(w.run(t, "", "kubectl", "api-resources", "--api-group", "kubermatic.k8c.io", "--cached=false", "-o", "name"))
	for _, crd := range crdName.FindAllStringSubmatch(string(files["crds.yaml"])+string(files["crds-standalone.yaml"]), -1) {
		if !slices.Contains(served, crd[1]) {
			t.Errorf("%s is not served, but %v", crd[1], served)
		}
	}
	w.takeOff(t)
}

// takeOff takes the platform off again. The core catalogue stays, with the option turned off too: core add-ons live off it.
func (w walk) takeOff(t *testing.T) {
	t.Helper()
	want := []string{"addoncatalogue.kubermatic.k8c.io/kkp-core"}
	w.run(t, "", "helm", "upgrade", "--no-hooks", "trellis-master", "trellis-master-"+version+".tgz", "--namespace", "kubermatic",
		"--set", "standalone.enabled=true")
	if diff := cmp.Diff(want, w.catalogues(t)); diff != "" {
		t.Errorf("without the option (-want +got):\n%s", diff)
	}
	for _, one := range charts {
		w.run(t, "", "helm", "uninstall", "--no-hooks", one.name, "--namespace", "kubermatic")
	}
	if diff := cmp.Diff(want, w.catalogues(t)); diff != "" {
		t.Errorf("without the charts (-want +got):\n%s", diff)
	}
	left := w.run(t, "", "kubectl", "get", "deployments,validatingadmissionpolicies,clusterroles", "-A", "-l", "app.kubernetes.io/part-of=trellis", "-o", "name")
	if left != "" {
		t.Errorf("without the charts there is still\n%s", left)
	}
}
