package outbound

import (
	"net/netip"
	"strings"

	"github.com/trellis-addons/trellis/pkg/addresses"
)

// addressRules say which addresses may be dialled.
type addressRules struct {
	allowed []netip.Prefix
	cluster []netip.Prefix
}

// refusal says in a few words why the address may not be dialled; "" means it may.
func (r addressRules) refusal(address netip.Addr) string {
	if !address.IsValid() {
		return "not an address"
	}
	if address.Zone() != "" {
		return "an address with a zone"
	}
	address = address.Unmap()
	if contains(r.allowed, address) {
		return ""
	}
	if contains(r.cluster, address) {
		return "a cluster-internal address"
	}
	if purpose := addresses.PurposeOf(address); purpose != "" {
		return string(purpose)
	}
	if inner, ok := addresses.Embedded(address); ok {
		return r.refusal(inner)
	}
	return ""
}

func contains(prefixes []netip.Prefix, address netip.Addr) bool {
	for _, prefix := range prefixes {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}

// clusterName says whether a host name belongs to the cluster's own DNS, whatever address it has.
func clusterName(host string) bool {
	host = "." + strings.ToLower(strings.TrimSuffix(host, "."))
	return strings.HasSuffix(host, ".svc") || strings.HasSuffix(host, ".cluster.local")
}
