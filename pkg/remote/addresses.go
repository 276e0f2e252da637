package remote

import (
	"net/netip"
	"slices"
	"syscall"

	"github.com/trellis-addons/trellis/pkg/addresses"
)

// Addresses are those that an API server may have. Link-local, multicast and metadata addresses are
// refused as a rule.
type Addresses struct {
	// OnlyHosts refuses whatever is no address of an ordinary host, such as our own loopback: the
	// kubeconfig is written by somebody who may not reach what we can.
	OnlyHosts bool
	// Allowed are loopback and link-local addresses that OnlyHosts allows all the same.
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
