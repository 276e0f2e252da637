package coreaddon

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

func TestRules(t *testing.T) {
	for _, test := range []struct {
		why, addon string
		change     func(*kkpv1.ClusterSpec)
		want       waves.Presence
	}{
		{"on aws", "aws-node-termination-handler", provider("aws"), waves.Present},
		{"on another provider", "aws-node-termination-handler", provider("gcp"), waves.Absent},
		{"the provider is not known", "aws-node-termination-handler", provider(""), waves.Unknown},
		{"on azure with the external cloud provider", "azure-cloud-node-manager", external("azure"), waves.Present},
		{"on azure without it", "azure-cloud-node-manager", provider("azure"), waves.Absent},
		{"with it on another provider", "azure-cloud-node-manager", external("aws"), waves.Absent},
		{"the provider is not known", "azure-cloud-node-manager", provider(""), waves.Unknown},
		{"the plugin is canal", "canal", plugin("canal", "v3.29"), waves.Present},
		{"the first canal that is known", "canal", plugin("canal", "v3.21"), waves.Present},
		{"a canal that is newer than this release", "canal", plugin("canal", "v4.1.2"), waves.Present},
		{"a plugin is not taken away over a version nobody knows", "canal", plugin("canal", "v3.8"), waves.Unknown},
		{"nor over a missing version", "canal", plugin("canal", ""), waves.Unknown},
		{"the plugin is another", "canal", plugin("cilium", "1.12.0"), waves.Absent},
		{"there is no plugin by choice", "canal", plugin("none", ""), waves.Absent},
		{"the plugin is not known", "canal", func(s *kkpv1.ClusterSpec) { s.CNIPlugin = nil }, waves.Unknown},
		{"an old cilium", "cilium", plugin("cilium", "v1.12.3"), waves.Present},
		{"the last old cilium, by a pre-release of the next", "cilium", plugin("cilium", "1.13.0-rc.1"), waves.Present},
		{"the first cilium that is an application", "cilium", plugin("cilium", "1.13.0"), waves.Absent},
		{"a new cilium", "cilium", plugin("cilium", "v1.16.6"), waves.Absent},
		{"a cilium without a version", "cilium", plugin("cilium", ""), waves.Unknown},
		{"the plugin is another", "cilium", plugin("canal", "v3.29"), waves.Absent},
		{"the plugin is not known", "cilium", func(s *kkpv1.ClusterSpec) { s.CNIPlugin.Type = "" }, waves.Unknown},
		{"aws by the external provider", "csi", external("aws"), waves.Present},
		{"aws in the tree", "csi", provider("aws"), waves.Absent},
		{"azure by the external provider", "csi", external("azure"), waves.Present},
		{"azure in the tree", "csi", provider("azure"), waves.Absent},
		{"hetzner by the external provider", "csi", external("hetzner"), waves.Present},
		{"openstack by the external provider", "csi", external("openstack"), waves.Present},
		{"openstack in the tree", "csi", provider("openstack"), waves.Absent},
		{"vsphere by the external provider", "csi", external("vsphere"), waves.Present},
		{"digitalocean", "csi", provider("digitalocean"), waves.Present},
		{"gcp", "csi", provider("gcp"), waves.Present},
		{"kubevirt", "csi", provider("kubevirt"), waves.Present},
		{"nutanix", "csi", provider("nutanix"), waves.Present},
		{"vmwareclouddirector", "csi", provider("vmwareclouddirector"), waves.Present},
		{"a provider without a driver", "csi", provider("bringyourown"), waves.Absent},
		{"the provider is not known", "csi", provider(""), waves.Unknown},
		{"the driver is disabled, whatever the provider", "csi", disabledCSI(""), waves.Absent},
		{"storage classes come with drivers", "default-storage-class", provider("gcp"), waves.Present},
		{"and in clusters whose provider is not known: the add-on looks itself", "default-storage-class", provider(""), waves.Present},
		{"the driver is disabled", "default-storage-class", disabledCSI("gcp"), waves.Absent},
		{"iptables", "kube-proxy", proxy("iptables"), waves.Present},
		{"ipvs", "kube-proxy", proxy("ipvs"), waves.Present},
		{"ebpf does it without", "kube-proxy", proxy("ebpf"), waves.Absent},
		{"the mode is not known", "kube-proxy", proxy(""), waves.Unknown},
		{"always", "kubeadm-configmap", provider(""), waves.Present},
		{"always", "kubelet-configmap", provider(""), waves.Present},
		{"always", "rbac", provider(""), waves.Present},
		{"konnectivity instead", "openvpn", konnectivity(new(true)), waves.Absent},
		{"no konnectivity", "openvpn", konnectivity(new(false)), waves.Present},
		{"konnectivity is not known", "openvpn", konnectivity(nil), waves.Unknown},
	} {
		t.Run(test.addon+"/"+test.why, func(t *testing.T) {
			cluster := fullCluster()
			test.change(&cluster.Spec)
			got := ruleOf(t, test.addon).decide(cluster)
			if got.presence != test.want {
				t.Errorf("presence %d, want %d", got.presence, test.want)
			}
			if (got.presence == waves.Unknown) != (got.detail != "") {
				t.Errorf("detail %q beside presence %d", got.detail, got.presence)
			}
			if strings.Contains(got.detail, "v3.8") {
				t.Error("the detail quotes the Cluster")
			}
		})
	}
}

func TestRulesAreReported(t *testing.T) {
	var names []string
	for _, rule := range rules() {
		names = append(names, rule.addon)
		if rule.condition == "" {
			t.Errorf("rule %q has no condition in words", rule.addon)
		}
	}
	want := []string{
		"aws-node-termination-handler", "azure-cloud-node-manager", "canal", "cilium", "csi", "default-storage-class",
		"kube-proxy", "kubeadm-configmap", "kubelet-configmap", "openvpn", "rbac",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

func ruleOf(t *testing.T, addon string) rule {
	t.Helper()
	for _, rule := range rules() {
		if rule.addon == addon {
			return rule
		}
	}
	t.Fatalf("no rule names %q", addon)
	return rule{}
}

// described is the description of a Cluster for the controller.
func described(kkp *kkpv1.Cluster) target.Description { return cluster.Describe(kkp) }

func fullCluster() *kkpv1.Cluster {
	cluster := &kkpv1.Cluster{}
	cluster.Name = "birch"
	cluster.Spec.Cloud.ProviderName = "aws"
	cluster.Spec.CNIPlugin = &kkpv1.CNIPlugin{Type: "canal", Version: "v3.29"}
	cluster.Spec.ClusterNetwork.ProxyMode = "ipvs"
	cluster.Spec.ClusterNetwork.KonnectivityEnabled = new(true)
	return cluster
}

func provider(name string) func(*kkpv1.ClusterSpec) {
	return func(s *kkpv1.ClusterSpec) { s.Cloud.ProviderName = name }
}

func external(name string) func(*kkpv1.ClusterSpec) {
	return func(s *kkpv1.ClusterSpec) {
		s.Cloud.ProviderName = name
		s.Features = map[string]bool{featureExternalCloudProvider: true}
	}
}

func plugin(kind, version string) func(*kkpv1.ClusterSpec) {
	return func(s *kkpv1.ClusterSpec) { s.CNIPlugin = &kkpv1.CNIPlugin{Type: kind, Version: version} }
}

func disabledCSI(name string) func(*kkpv1.ClusterSpec) {
	return func(s *kkpv1.ClusterSpec) { s.Cloud.ProviderName, s.DisableCSIDriver = name, true }
}

func proxy(mode string) func(*kkpv1.ClusterSpec) {
	return func(s *kkpv1.ClusterSpec) { s.ClusterNetwork.ProxyMode = mode }
}

func konnectivity(enabled *bool) func(*kkpv1.ClusterSpec) {
	return func(s *kkpv1.ClusterSpec) { s.ClusterNetwork.KonnectivityEnabled = enabled }
}
