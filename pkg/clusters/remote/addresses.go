package remote

import (
	"net/netip"
	"slices"
	"syscall"

	"github.com/trellis-addons/trellis/pkg/base/addresses"
)

// Addresses are those that an API server may have. Link-local and multicast addresses are refused, except those that
// Allowed has together with OnlyHosts; metadata addresses are always refused.
type Addresses struct {
	// OnlyHosts refuses all addresses except those of ordinary hosts, so also our own loopback: the author of the
	// kubeconfig may not be able to reach what we can.
	OnlyHosts bool
	// Allowed are loopback and link-local addresses that OnlyHosts allows as exceptions.
	Allowed []netip.Prefix
}

// check checks the dialled address, after name resolution.
func (a Addresses) check(_, address string, _ syscall.RawConn) error {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return &RefusedAddressError{}
	}
	given := parsed.Addr().WithZone("").Unmap()
	plain := given
	if inner, ok := addresses.Embedded(plain); ok {
		plain = inner
	}
	purpose := addresses.PurposeOf(plain)
	if a.OnlyHosts && purpose != addresses.Metadata && a.allow(given, plain) {
		return nil
	}
	switch {
	case purpose == addresses.Metadata, purpose == addresses.LinkLocal, purpose == addresses.Multicast:
		return &RefusedAddressError{}
	case a.OnlyHosts && (purpose != "" || addresses.PurposeOf(given) != ""):
		return &RefusedAddressError{OnlyHosts: true}
	}
	return nil
}

func (a Addresses) allow(given, plain netip.Addr) bool {
	return slices.ContainsFunc(a.Allowed, func(allowed netip.Prefix) bool { return allowed.Contains(given) || allowed.Contains(plain) })
}
