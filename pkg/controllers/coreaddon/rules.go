package coreaddon

import (
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/api/equality"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

// Names of features in Cluster.spec.features, of network plugins and of proxy modes, as KKP writes them.
const (
	featureExternalCloudProvider = "externalCloudProvider"
	cniCanal                     = "canal"
	cniCilium                    = "cilium"
	proxyModeEBPF                = "ebpf"
	providerAWS                  = "aws"
	providerAzure                = "azure"
)

// answer is a rule's answer for one cluster. It is unknown if a field that the rule needs is missing, or has an
// unknown value, as detail says: existing installations stay.
type answer struct {
	presence waves.Presence
	detail   string
}

// rule decides about one add-on by the fields of a Cluster. The condition describes it for users.
type rule struct {
	addon     string
	condition string
	decide    func(*kkpv1.Cluster) answer
}

// rules are KKP's: those of its function skipAddonInstallation, and the conditions in its add-ons' manifests, which
// render to nothing if they are false.
func rules() []rule {
	return []rule{
		{"aws-node-termination-handler", "provider aws", onProvider(providerAWS, false)},
		{"azure-cloud-node-manager", "provider azure with the external cloud provider", onProvider(providerAzure, true)},
		{"canal", "network plugin canal from 3.21 on", decideCanal},
		{"cilium", "network plugin cilium before 1.13; later ones are applications", decideCilium},
		{"csi", "a provider with a CSI driver, unless it is disabled", decideCSI},
		{"default-storage-class", "unless the CSI driver is disabled", decideStorageClass},
		{"kube-proxy", "unless the proxy mode is ebpf", decideKubeProxy},
		{"kubeadm-configmap", "always", always},
		{"kubelet-configmap", "always", always},
		{"openvpn", "without konnectivity", decideOpenVPN},
		{"rbac", "always", always},
	}
}

// kkpCluster is the part of a cluster that rules read; other kinds have no rules.
func kkpCluster(cluster target.Description) (kkp *kkpv1.Cluster, isKKP bool) {
	kkp, isKKP = cluster.Object.(*kkpv1.Cluster)
	return kkp, isKKP
}

func rulesConcern(before, after target.Description) bool {
	one, isOne := kkpCluster(before)
	other, isOther := kkpCluster(after)
	return isOne && isOther && !equality.Semantic.DeepEqual(one.Spec, other.Spec)
}

func always(*kkpv1.Cluster) answer { return answer{presence: waves.Present} }

// missing is the answer of a rule that can't decide.
func missing(format string, arguments ...any) answer {
	return answer{waves.Unknown, fmt.Sprintf(format, arguments...)}
}

func when(condition bool) answer {
	if condition {
		return answer{presence: waves.Present}
	}
	return answer{presence: waves.Absent}
}

// onProvider is the rule of add-ons for one provider. A feature that is not set is off.
func onProvider(provider string, external bool) func(*kkpv1.Cluster) answer {
	return func(cluster *kkpv1.Cluster) answer {
		if cluster.Spec.Cloud.ProviderName == "" {
			return missing("spec.cloud.providerName is missing")
		}
		return when(cluster.Spec.Cloud.ProviderName == provider && (!external || cluster.Spec.Features[featureExternalCloudProvider]))
	}
}

// providersWithCSI have a driver; true: it requires the external cloud provider.
var providersWithCSI = map[string]bool{
	providerAWS: true, providerAzure: true, "digitalocean": false, "gcp": false, "hetzner": true, "kubevirt": false,
	"nutanix": false, "openstack": true, "vmwareclouddirector": false, "vsphere": true,
}

func decideCSI(cluster *kkpv1.Cluster) answer {
	if cluster.Spec.DisableCSIDriver {
		return when(false)
	}
	provider := cluster.Spec.Cloud.ProviderName
	if provider == "" {
		return missing("spec.cloud.providerName is missing")
	}
	external, known := providersWithCSI[provider]
	return when(known && (!external || cluster.Spec.Features[featureExternalCloudProvider]))
}

func decideStorageClass(cluster *kkpv1.Cluster) answer { return when(!cluster.Spec.DisableCSIDriver) }

func decideKubeProxy(cluster *kkpv1.Cluster) answer {
	mode := cluster.Spec.ClusterNetwork.ProxyMode
	if mode == "" {
		return missing("spec.clusterNetwork.proxyMode is missing")
	}
	return when(mode != proxyModeEBPF)
}

func decideOpenVPN(cluster *kkpv1.Cluster) answer {
	konnectivity := cluster.Spec.ClusterNetwork.KonnectivityEnabled
	if konnectivity == nil {
		return missing("spec.clusterNetwork.konnectivityEnabled is missing")
	}
	return when(!*konnectivity)
}

var (
	oldestCanal = semver.MustParse("3.21.0")
	// appCilium is the first version that KKP installs as an application.
	appCilium = semver.MustParse("1.13.0")
)

// decideCanal never removes a network plugin because of an unknown version.
func decideCanal(cluster *kkpv1.Cluster) answer {
	version, answer := pluginVersion(cluster, cniCanal)
	switch {
	case version == nil:
		return answer
	case version.LessThan(oldestCanal):
		return missing("this version of canal is older than all supported ones")
	}
	return when(true)
}

func decideCilium(cluster *kkpv1.Cluster) answer {
	version, answer := pluginVersion(cluster, cniCilium)
	if version == nil {
		return answer
	}
	return when(version.LessThan(appCilium))
}

// pluginVersion is the version of the network plugin; nil and an answer if the plugin is another one or unknown.
func pluginVersion(cluster *kkpv1.Cluster, kind string) (*semver.Version, answer) {
	plugin := cluster.Spec.CNIPlugin
	if plugin == nil || plugin.Type == "" {
		return nil, missing("spec.cniPlugin.type is missing")
	}
	if plugin.Type != kind {
		return nil, when(false)
	}
	version, err := semver.NewVersion(plugin.Version)
	if err != nil {
		return nil, missing("spec.cniPlugin.version of %s is missing or no version", kind)
	}
	return version, answer{}
}

func isRuled(addon string) bool {
	return slices.ContainsFunc(rules(), func(r rule) bool { return r.addon == addon })
}
