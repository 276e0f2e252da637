// Package addresses knows addresses of special purpose, such as those at which cloud providers serve secrets.
// Packages that dial foreign addresses decide which ones they refuse. It is pure.
package addresses

import "net/netip"

// Purpose is the purpose of an address; empty for an ordinary host.
type Purpose string

// Purposes of addresses.
const (
	Metadata    Purpose = "a metadata address"
	Unspecified Purpose = "an unspecified address"
	Loopback    Purpose = "a loopback address"
	LinkLocal   Purpose = "a link-local address"
	SiteLocal   Purpose = "a site-local address"
	Multicast   Purpose = "a multicast address"
	Reserved    Purpose = "a reserved address"
	// Translated addresses represent others that only the network knows.
	Translated Purpose = "a translated address"
)

// special has the ranges of the IANA special-purpose registries, and the documented metadata
// addresses of cloud providers. The first match counts: narrow ranges come first.
var special = []struct {
	prefix  netip.Prefix
	purpose Purpose
}{
	{netip.MustParsePrefix("169.254.169.254/32"), Metadata},
	{netip.MustParsePrefix("100.100.100.200/32"), Metadata}, // Alibaba Cloud
	{netip.MustParsePrefix("168.63.129.16/32"), Metadata},   // Azure
	{netip.MustParsePrefix("192.0.0.192/32"), Metadata},     // Oracle Cloud
	{netip.MustParsePrefix("fd00:ec2::254/128"), Metadata},  // AWS
	{netip.MustParsePrefix("fd20:ce::254/128"), Metadata},   // Google Cloud
	{netip.MustParsePrefix("0.0.0.0/8"), Unspecified},
	{netip.MustParsePrefix("127.0.0.0/8"), Loopback},
	{netip.MustParsePrefix("169.254.0.0/16"), LinkLocal},
	{netip.MustParsePrefix("224.0.0.0/4"), Multicast},
	{netip.MustParsePrefix("240.0.0.0/4"), Reserved},
	{netip.MustParsePrefix("::/128"), Unspecified},
	{netip.MustParsePrefix("::1/128"), Loopback},
	{netip.MustParsePrefix("64:ff9b:1::/48"), Translated}, // NAT64 of a network's own, RFC 8215
	{netip.MustParsePrefix("2001::/32"), Translated},      // Teredo
	{netip.MustParsePrefix("fe80::/10"), LinkLocal},
	{netip.MustParsePrefix("fec0::/10"), SiteLocal},
	{netip.MustParsePrefix("ff00::/8"), Multicast},
}

// embeddings are ranges of IPv6 addresses that contain the IPv4 address they lead to.
var embeddings = []struct {
	prefix netip.Prefix
	offset int // of the IPv4 address, in bytes
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12}, // NAT64, RFC 6052
	{netip.MustParsePrefix("2002::/16"), 2},     // 6to4, RFC 3056
	{netip.MustParsePrefix("::/96"), 12},        // IPv4-compatible, RFC 4291
}

// PurposeOf is the purpose of an address without a zone. It ignores an embedded IPv4 address.
func PurposeOf(address netip.Addr) Purpose {
	address = address.Unmap()
	for _, one := range special {
		if one.prefix.Contains(address) {
			return one.purpose
		}
	}
	return ""
}

// Embedded is the IPv4 address that an IPv6 address contains.
func Embedded(address netip.Addr) (netip.Addr, bool) {
	address = address.Unmap()
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
