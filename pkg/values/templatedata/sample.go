package templatedata

import (
	"regexp"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
)

// Sample is the data of a cluster that does not exist, with a version of Kubernetes: for renderings that are not
// installed. It has names, addresses and ranges, but no settings of individual clusters; see BeyondSample.
func Sample(kubernetes string) (Data, error) {
	const name, host = "sample", "sample.example.com"
	cluster := &kkpv1.Cluster{}
	cluster.Name = name
	cluster.Spec.HumanReadableName, cluster.Spec.Version, cluster.Spec.Cloud.Datacenter = name, kubernetes, name
	cluster.Spec.ClusterNetwork = kkpv1.ClusterNetwork{
		Services:  kkpv1.NetworkRanges{CIDRBlocks: []string{"10.240.16.0/20"}},
		Pods:      kkpv1.NetworkRanges{CIDRBlocks: []string{"172.25.0.0/16"}},
		DNSDomain: "cluster.local", ProxyMode: "iptables",
	}
	cluster.Spec.ComponentsOverride.APIServer.NodePortRange = "30000-32767"
	cluster.Status.NamespaceName = "cluster-" + name
	cluster.Status.UserName, cluster.Status.UserEmail = name, name+"@example.com"
	cluster.Status.Address = kkpv1.ClusterAddress{
		URL: "https://" + host + ":6443", Port: 6443, ExternalName: host, InternalName: host, IP: "192.0.2.1", APIServerExternalAddress: host,
	}
	return New(cluster, Options{SeedName: name})
}

// BeyondSample finds names, in the text of a template, of data that the sample lacks and clusters may have.
var BeyondSample = regexp.MustCompile(`\b(Labels|Annotations|Features|IPAMAllocations|CSI|CSIMigration|CNIPlugin|MLA|KubeVirtInfra\w+|` +
	`StrictArp|DualStack|PodCIDRIPv6|NodeCIDRMaskSizeIPv6|DisableCSIDriver|` +
	`CloudProviderName|Credentials|Kubeconfig|AdminToken|Platform|OverwriteRegistry|CAPI|ClusterName|AddonInstallNamespace|` +
	`InstallMode|HubKubeConfigSecret|APIVersions|lookup)\b`)
