package templatedata

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
)

// InWordsOfKKP converts a Cluster of Cluster API to one of KKP, as far as both have the same fields: names, labels,
// version, network, address and provider. There is no node-local DNS cache.
func InWordsOfKKP(found *capiv1.Cluster, version, provider string) *kkpv1.Cluster {
	cluster := &kkpv1.Cluster{}
	cluster.Name, cluster.Labels, cluster.Annotations = found.Name, found.Labels, maps.Clone(found.Annotations)
	maps.DeleteFunc(cluster.Annotations, func(key, _ string) bool { return isOfCAPI(key) })
	cluster.Spec.HumanReadableName = found.Name
	cluster.Spec.Cloud.ProviderName = provider
	network, given := &cluster.Spec.ClusterNetwork, found.Spec.ClusterNetwork
	network.DNSDomain = given.ServiceDomain
	network.Pods.CIDRBlocks, network.Services.CIDRBlocks = given.Pods.CIDRBlocks, given.Services.CIDRBlocks
	network.NodeLocalDNSCacheEnabled = new(false)
	cluster.Status.NamespaceName = found.Namespace
	cluster.Status.Versions.ControlPlane = version
	cluster.Status.Address = addressOf(found.Spec.ControlPlaneEndpoint)
	return cluster
}

// isOfCAPI says whether Cluster API writes an annotation during its work, or Trellis to hold upgrades: templates
// don't depend on those.
func isOfCAPI(annotation string) bool {
	domain, _, _ := strings.Cut(annotation, "/")
	return domain == capiv1.Group || strings.HasSuffix(domain, "."+capiv1.Group)
}

func addressOf(endpoint capiv1.Endpoint) (address kkpv1.ClusterAddress) {
	if endpoint.Host == "" {
		return address
	}
	address.URL, address.Port = fmt.Sprintf("https://%s:%d", bracketed(endpoint.Host), endpoint.Port), endpoint.Port
	address.APIServerExternalAddress = endpoint.Host
	if _, err := netip.ParseAddr(endpoint.Host); err == nil {
		address.IP = endpoint.Host
		return address
	}
	address.ExternalName, address.InternalName = endpoint.Host, endpoint.Host
	return address
}

func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// providerNames are KKP's names for kinds of infrastructure (pkg/provider/types.go and
// sdk/apis/kubermatic/v1/cluster.go of KKP).
var providerNames = map[string]string{
	"Anexia": "anexia", "AWS": "aws", "Azure": "azure", "DO": "digitalocean", "GCP": "gcp", "Hetzner": "hetzner", "Kubevirt": "kubevirt",
	"Nutanix": "nutanix", "OpenStack": "openstack", "Tinkerbell": "baremetal", "VCD": "vmwareclouddirector", "VSphere": "vsphere",
}

// ProviderOf is the provider of a Cluster of Cluster API: KKP's name for the kind of its infrastructure or, without
// one, the kind without "Cluster".
func ProviderOf(found *capiv1.Cluster) string {
	kind := strings.TrimSuffix(found.Spec.InfrastructureRef.Kind, capiv1.Kind)
	if name, ok := providerNames[kind]; ok {
		return name
	}
	return kind
}
