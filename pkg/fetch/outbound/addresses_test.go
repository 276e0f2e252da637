package outbound

import (
	"net/netip"
	"testing"
)

// TestAddressesOfSpecialPurposeAreNotDialled (AC14): Addresses of special purpose are dialled only if they are
// allowed.
func TestAddressesOfSpecialPurposeAreNotDialled(t *testing.T) {
	rules := addressRules{
		allowed: []netip.Prefix{netip.MustParsePrefix("10.1.2.0/24"), netip.MustParsePrefix("127.0.0.2/32")},
		cluster: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12"), netip.MustParsePrefix("fd00:10::/48")},
	}
	for _, test := range []struct{ why, address, refusal string }{
		{"a public address", "93.184.216.34", ""},
		{"a public IPv6 address", "2606:2800:220:1::1", ""},
		{"a private address outside of the cluster's networks: many registries live there", "192.168.7.7", ""},
		{"a unique local address outside of the cluster's networks", "fd12:3456::1", ""},
		{"loopback", "127.0.0.1", "a loopback address"},
		{"all of 127/8 is loopback", "127.8.9.10", "a loopback address"},
		{"loopback of IPv6", "::1", "a loopback address"},
		{"loopback mapped into IPv6", "::ffff:127.0.0.1", "a loopback address"},
		{"loopback in the IPv4-compatible form", "::127.0.0.1", "a loopback address"},
		{"loopback behind NAT64", "64:ff9b::7f00:1", "a loopback address"},
		{"loopback behind 6to4", "2002:7f00:1::", "a loopback address"},
		{"a public address behind NAT64", "64:ff9b::5db8:d822", ""},
		{"NAT64 of a network's own", "64:ff9b:1::5db8:d822", "a translated address"},
		{"Teredo", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "a translated address"},
		{"unspecified reaches loopback on Linux", "0.0.0.0", "an unspecified address"},
		{"so does the rest of 0/8", "0.1.2.3", "an unspecified address"},
		{"unspecified of IPv6", "::", "an unspecified address"},
		{"unspecified mapped", "::ffff:0.0.0.0", "an unspecified address"},
		{"the metadata address of most clouds", "169.254.169.254", "a metadata address"},
		{"mapped", "::ffff:169.254.169.254", "a metadata address"},
		{"behind NAT64", "64:ff9b::a9fe:a9fe", "a metadata address"},
		{"of AWS over IPv6", "fd00:ec2::254", "a metadata address"},
		{"of Google Cloud over IPv6", "fd20:ce::254", "a metadata address"},
		{"of Alibaba Cloud", "100.100.100.200", "a metadata address"},
		{"of Azure", "168.63.129.16", "a metadata address"},
		{"of Oracle Cloud", "192.0.0.192", "a metadata address"},
		{"link-local", "169.254.0.1", "a link-local address"},
		{"link-local of IPv6", "fe80::1", "a link-local address"},
		{"with a zone", "fe80::1%eth0", "an address with a zone"},
		{"a zone does not open a good address", "2606:2800:220:1::1%eth0", "an address with a zone"},
		{"site-local", "fec0::1", "a site-local address"},
		{"multicast", "224.0.0.251", "a multicast address"},
		{"multicast of IPv6", "ff02::fb", "a multicast address"},
		{"broadcast", "255.255.255.255", "a reserved address"},
		{"a service of the cluster", "10.96.0.1", "a cluster-internal address"},
		{"a service of the cluster, mapped", "::ffff:10.96.0.1", "a cluster-internal address"},
		{"a service of the cluster, behind NAT64", "64:ff9b::a60:1", "a cluster-internal address"},
		{"a pod of the cluster over IPv6", "fd00:10::5", "a cluster-internal address"},
		{"an allowed address", "10.1.2.3", ""},
		{"an allowed loopback address", "127.0.0.2", ""},
		{"an allowed address, mapped", "::ffff:127.0.0.2", ""},
		{"beside the allowed one", "127.0.0.3", "a loopback address"},
	} {
		if got := rules.refusal(netip.MustParseAddr(test.address)); got != test.refusal {
			t.Errorf("%s: %s: got %q, want %q", test.why, test.address, got, test.refusal)
		}
	}
	if rules.refusal(netip.Addr{}) == "" {
		t.Error("no address at all may be dialled")
	}
}

// TestNamesOfTheClusterAreNotDialled (AC14): Names of services of the cluster are not dialled.
func TestNamesOfTheClusterAreNotDialled(t *testing.T) {
	for name, want := range map[string]bool{
		"registry.default.svc": true, "registry.default.svc.cluster.local": true, "X.DEFAULT.SVC.": true,
		"cluster.local": true, "svc": true, "example.com": false, "mysvc": false, "svc.example.com": false,
	} {
		if got := clusterName(name); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
