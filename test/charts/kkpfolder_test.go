package charts

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	contract "github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/gotemplate"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// kkpRelease is the one that the folder of make kkp-check is of.
const kkpRelease = "2.31.0"

// kkpNames are the folders in KKP's image, of every release that the chart has a version for.
var kkpNames = []string{
	"aws-node-termination-handler", "azure-cloud-node-manager", "canal", "csi", "default-storage-class", "hubble", "kube-proxy",
	"kube-state-metrics", "kubeadm-configmap", "kubelet-configmap", "metallb", "multus", "node-exporter", "openvpn", "rbac",
}

// kkpGaveUp are folders that only images of earlier releases have, and these releases.
var kkpGaveUp = map[string][]string{
	"cilium":             {"2.25.18"},
	"cluster-autoscaler": {"2.25.18", "2.26.13", "2.27.12", "2.28.13", "2.29.10"},
}

// offered are the names that both catalogues have together, by version.
func offered(t *testing.T) map[string][]string {
	t.Helper()
	names := map[string][]string{}
	_, objects := render(t, rendering{chart: "trellis-master", values: coreCatalogue(map[string]any{"optional": true})})
	for _, object := range objects {
		if object.GetKind() != "AddonCatalogue" {
			continue
		}
		found := &kubermaticv1.AddonCatalogue{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, found); err != nil {
			t.Fatal(err)
		}
		for _, addon := range found.Spec.Addons {
			for _, version := range addon.Versions {
				names[version.Version] = append(names[version.Version], string(addon.Name))
			}
		}
	}
	for _, each := range names {
		slices.Sort(each)
	}
	return names
}

// What the catalogues offer for a release of KKP is what its image has, no more and no less. Red when a row of kkp-addons.yaml is taken
// out, or its "before" is wrong; and in make kkp-check when KKP has another folder than the list here.
func TestKKPCataloguesOfferWhatItsImageHas(t *testing.T) {
	all := offered(t)
	for version, found := range all {
		want := slices.Clone(kkpNames)
		for name, releases := range kkpGaveUp {
			if slices.Contains(releases, version) {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("version %s (-want +got):\n%s", version, diff)
		}
	}
	if len(all) < 7 {
		t.Errorf("there are the versions %v alone", slices.Sorted(maps.Keys(all)))
	}
	if *kkpAddons == "" {
		return
	}
	if diff := cmp.Diff(kkpFolders(t), all[kkpRelease]); diff != "" {
		t.Errorf("add-ons (-of KKP's folder +offered):\n%s", diff)
	}
}

// kkpFolders are the names of the add-ons in KKP's image.
func kkpFolders(t *testing.T) []string {
	t.Helper()
	names := map[string]bool{}
	for file := range kkpFiles(t) {
		if parts := strings.Split(file, "/"); parts[0] == "addons" && len(parts) > 2 {
			names[parts[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// onEveryProvider are clusters on all providers with add-ons of their own. One has the network plugin cilium, the others canal.
func onEveryProvider() map[string]*kkpv1.Cluster {
	clusters := map[string]*kkpv1.Cluster{}
	for _, provider := range []string{
		"aws", "azure", "digitalocean", "gcp", "hetzner", "kubevirt", "nutanix", "openstack", "vmwareclouddirector", "vsphere",
	} {
		cluster := onDigitalocean("on-" + provider)
		cluster.Spec.Cloud = kkpv1.CloudSpec{ProviderName: provider}
		cluster.Spec.Features = map[string]bool{"externalCloudProvider": true}
		cluster.Status.Versions.ControlPlane = "v1.36.3"
		clusters[provider] = cluster
	}
	clusters["gcp"].Spec.CNIPlugin = &kkpv1.CNIPlugin{Type: "cilium", Version: "1.13.8"}
	return clusters
}

// Each add-on that is offered, and that the image has, renders on each provider to objects or to nothing, and to objects on one at
// least. Red when its templates ask for a function or a field that there is not; in make kkp-check these are KKP's own.
func TestKKPAddonsRender(t *testing.T) {
	files := fstest.MapFS{}
	for file, text := range kkpFiles(t) {
		files[file] = &fstest.MapFile{Data: []byte(text)}
	}
	present, clusters, rendered := kkpFolders(t), onEveryProvider(), 0
	for _, name := range offered(t)[kkpRelease] {
		if !slices.Contains(present, name) {
			continue
		}
		content, err := fs.Sub(files, path.Join("addons", name))
		if err != nil {
			t.Fatal(err)
		}
		var on []string
		objects := 0
		for _, provider := range slices.Sorted(maps.Keys(clusters)) {
			found := renderAddon(t, name, content, clusters[provider])
			if objects += found; found > 0 {
				on = append(on, provider)
			}
		}
		if objects == 0 {
			t.Errorf("%s renders to nothing anywhere", name)
		}
		rendered++
		t.Logf("%s: %d objects in all, on %v", name, objects, on)
	}
	if rendered < 7 {
		t.Errorf("%d add-ons were rendered", rendered)
	}
}

// renderAddon gives the number of objects that an add-on has on a cluster.
func renderAddon(t *testing.T, name string, content fs.FS, cluster *kkpv1.Cluster) int {
	t.Helper()
	data, err := templatedata.New(cluster, templatedata.Options{Variables: map[string]any{"NodeAccessNetwork": "10.254.0.0/16"}})
	if err != nil {
		t.Fatal(err)
	}
	if data, err = templatedata.WithSecrets(data, cluster, templatedata.Secrets{}); err != nil {
		t.Fatal(err)
	}
	result, err := gotemplate.New().Render(t.Context(), contract.Input{Addon: name, Content: content, Data: data})
	if nothing := (*contract.NoManifestsError)(nil); err != nil && !errors.As(err, &nothing) {
		t.Errorf("%s on %s: %v", name, cluster.Spec.Cloud.ProviderName, err)
	}
	return len(result.Objects)
}
