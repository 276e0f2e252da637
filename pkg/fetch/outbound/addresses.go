package outbound

import (
	"net/netip"
	"strings"
)

// closedRange is a range that no source may live in.
type closedRange struct {
	prefix netip.Prefix
	name   string
}

// closedRanges come from the IANA special-purpose registries and from the metadata addresses that cloud providers
// document. The first match names the refusal, so narrow ranges stand before wide ones.
var closedRanges = []closedRange{
	{netip.MustParsePrefix("169.254.169.254/32"), "a metadata address"},
	{netip.MustParsePrefix("100.100.100.200/32"), "a metadata address"}, // Alibaba Cloud
	{netip.MustParsePrefix("168.63.129.16/32"), "a metadata address"},   // Azure
	{netip.MustParsePrefix("192.0.0.192/32"), "a metadata address"},     // Oracle Cloud
	{netip.MustParsePrefix("fd00:ec2::254/128"), "a metadata address"},  // AWS
	{netip.MustParsePrefix("fd20:ce::254/128"), "a metadata address"},   // Google Cloud
	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified address"},
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address"},
	{netip.MustParsePrefix("::/128"), "an unspecified address"},
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "a translated address"}, // NAT64 of a network's own, RFC 8215
	{netip.MustParsePrefix("2001::/32"), "a translated address"},      // Teredo
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("fec0::/10"), "a site-local address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
}

// embedding is a range of IPv6 addresses that stand for an IPv4 address, which is what gets reached in the end.
type embedding struct {
	prefix netip.Prefix
	offset int // of the IPv4 address, in bytes
}

var embeddings = []embedding{
	{netip.MustParsePrefix("64:ff9b::/96"), 12}, // NAT64, RFC 6052
	{netip.MustParsePrefix("2002::/16"), 2},     // 6to4, RFC 3056
	{netip.MustParsePrefix("::/96"), 12},        // IPv4-compatible, RFC 4291
}

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
	for _, closed := range closedRanges {
		if closed.prefix.Contains(address) {
			return closed.name
		}
	}
	if inner, ok := embedded(address); ok {
		return r.refusal(inner)
	}
	return ""
}

// embedded gives the IPv4 address that an IPv6 address stands for.
func embedded(address netip.Addr) (netip.Addr, bool) {
	if address.Is4() {
		return netip.Addr{}, false
	}
	for _, kind := range embeddings {
		if kind.prefix.Contains(address) {
			bytes := address.As16()
			inner, ok := netip.AddrFromSlice(bytes[kind.offset : kind.offset+4])
			return inner, ok
		}
	}
	return netip.Addr{}, false
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
