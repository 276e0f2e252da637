package charts

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
)

// kkpAddons is KKP's own folder of add-ons, from a checkout of KKP, to be tried in place of the small one.
var kkpAddons = flag.String("kkp-addons", "", "the folder addons of a checkout of KKP 2.31, as an absolute path; empty: a small one of the same shape")

// configMap is the manifest of one that tells something about the cluster.
func configMap(name, value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: kube-system}\ndata: {value: " + value + "}\n"
}

// proxy is a DaemonSet for each node, of an image that the platform may have another registry for.
const proxy = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-proxy, namespace: kube-system}
spec:
  selector: {matchLabels: {k8s-app: kube-proxy}}
  template:
    metadata: {labels: {k8s-app: kube-proxy}}
    spec:
      containers:
      - {name: kube-proxy, image: '{{ Image (print "registry.example.com/kube-proxy:v" .Cluster.Version) }}'}
`

// smallKKPImage has the shape of KKP's image: other content around a folder for each add-on, files in it that are no manifests, folders
// below folders, and manifests that are empty but for the clusters they are meant for.
func smallKKPImage() map[string]string {
	canal := func(version string) string {
		guard := `{{ if and (eq .Cluster.CNIPlugin.Type "canal") (eq .Cluster.CNIPlugin.Version "` + version + `") }}`
		return guard + "\n" + configMap("canal", "'"+version+" {{ .Cluster.Network.PodCIDRIPv4 }}'") + "{{ end }}\n"
	}
	return map[string]string{
		"etc/os-release":              "NAME=none\n",
		"addons/README.md":            "{{ not a template",
		"addons/values-a.yaml":        "{{ nor this",
		"addons/canal/canal_old.yaml": canal("v3.30"), "addons/canal/canal_new.yaml": canal("v3.31"),
		"addons/csi/hetzner/driver.yaml":        `{{ if eq .Cluster.CloudProviderName "hetzner" }}` + configMap("csi-hetzner", "x") + "{{ end }}\n",
		"addons/csi/digitalocean/_header.txt":   "{{ if",
		"addons/csi/digitalocean/driver.yaml":   `{{ if eq .Cluster.CloudProviderName "digitalocean" }}` + configMap("csi", "x") + secretOf + "{{ end }}\n",
		"addons/default-storage-class/one.yaml": "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: kubermatic}\nprovisioner: example.com/x\n",
		"addons/kube-proxy/daemonset.yaml":      proxy,
		"addons/kubeadm-configmap/one.yaml":     configMap("kubeadm-config", "'{{ .Cluster.MajorMinorVersion }}'"),
		"addons/kubelet-configmap/one.yaml":     configMap("kubelet-config", "'{{ .Cluster.Network.DNSResolverIP }}'"),
		"addons/rbac/one.yaml":                  configMap("rbac", "x"),
		"addons/cilium/broken.yaml":             "{{ broken",
	}
}

const secretOf = "\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: digitalocean-csi, namespace: kube-system}\n" +
	"stringData: {token: '{{ .Credentials.Digitalocean.Token }}'}\n"

// kkpFiles are those of KKP's image: the small one, or with KKP's own add-ons.
func kkpFiles(t *testing.T) map[string]string {
	t.Helper()
	if *kkpAddons == "" {
		return smallKKPImage()
	}
	files := map[string]string{}
	folder := os.DirFS(*kkpAddons)
	err := fs.WalkDir(folder, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(folder, file)
		files[path.Join("addons", file)] = string(content)
		return err
	})
	expect.NoError(t, err)
	return files
}

// kkpImage puts the image of KKP's add-ons into the registry.
func kkpImage(t *testing.T, sources *fleet.Sources) {
	t.Helper()
	if _, err := sources.Image("kkp/addons", "v2.31.0", kkpFiles(t)); err != nil {
		t.Fatal(err)
	}
}

// onDigitalocean is a Cluster as KKP has them: with a provider and its credentials, and canal.
func onDigitalocean(name string) *kkpv1.Cluster {
	return &kkpv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: kkpv1.ClusterSpec{
			Cloud: kkpv1.CloudSpec{
				ProviderName: "digitalocean", Digitalocean: &kkpv1.TokenCloudSpec{
					CredentialsReference: &kkpv1.CredentialsReference{Name: "credentials", Namespace: namespace},
				},
			},
			CNIPlugin: &kkpv1.CNIPlugin{Type: "canal", Version: "v3.31"},
			ClusterNetwork: kkpv1.ClusterNetwork{
				Services: kkpv1.NetworkRanges{CIDRBlocks: []string{"10.96.0.0/16"}}, Pods: kkpv1.NetworkRanges{CIDRBlocks: []string{"172.25.0.0/16"}},
				DNSDomain: "cluster.local", ProxyMode: "ipvs", KonnectivityEnabled: new(true),
			},
		},
	}
}

// expectCoreAddons holds when the cluster has what the rules give it, out of the catalogue that the chart brought. Red when the
// catalogue does not ask for the secrets of the cluster, when a path is wrong, or when its range leaves out the platform's KKP.
func expectCoreAddons(t *testing.T, c client.Client) {
	t.Helper()
	want := []string{
		"canal 2.31.0", "csi 2.31.0", "default-storage-class 2.31.0", "kube-proxy 2.31.0", "kubeadm-configmap 2.31.0",
		"kubelet-configmap 2.31.0", "rbac 2.31.0",
	}
	expect.Eventually(t, expect.Patience, func() error {
		var list kubermaticv1.AddonInstallationList
		if err := c.List(t.Context(), &list, client.InNamespace("cluster-one")); err != nil {
			return err
		}
		var found []string
		for i := range list.Items {
			one := &list.Items[i]
			if !one.Spec.CoreAddon {
				continue
			}
			// Nothing runs pods here, so none of these is healthy.
			if err := expect.Condition(one, kubermaticv1.ConditionApplied, "True", ""); err != nil {
				return fmt.Errorf("%s: %w", one.Name, err)
			}
			found = append(found, one.Name+" "+one.Status.Version)
		}
		slices.Sort(found)
		if diff := cmp.Diff(want, found); diff != "" {
			return fmt.Errorf("core add-ons (-want +got):\n%s", diff)
		}
		return nil
	})
	expect.Object(t, c, given.Secret("kube-system", "digitalocean-csi", nil), func(found *corev1.Secret) error {
		if got := string(found.Data["token"]); got != "a-token" {
			return fmt.Errorf("the driver has token %q", got)
		}
		return nil
	})
	daemon := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-proxy"}}
	expect.Object(t, c, daemon, func(found *appsv1.DaemonSet) error {
		if image := found.Spec.Template.Spec.Containers[0].Image; !strings.Contains(image, "kube-proxy:v1.36.") {
			return fmt.Errorf("kube-proxy is %s", image)
		}
		return nil
	})
	if *kkpAddons != "" {
		return
	}
	for name, want := range map[string]string{"canal": "v3.31 172.25.0.0/16", "kubeadm-config": "1.36"} {
		reported := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}}
		expect.Object(t, c, reported, func(found *corev1.ConfigMap) error {
			if found.Data["value"] != want {
				return fmt.Errorf("%s tells %q", name, found.Data["value"])
			}
			return nil
		})
	}
}
