package remote

import (
	"errors"
	"fmt"
)

// MisbehavesError describes an API server that did what no API server does: it exceeded a limit, or sent unrequested
// bytes. It has no text of an answer, and is fit for a condition.
type MisbehavesError struct {
	// Asked is the request: "GET /apis/apps/v1/deployments"; empty for unrequested bytes.
	Asked string
	// Did describes it: "the answer has more than 1000000 values".
	Did string
}

func (e *MisbehavesError) Error() string {
	if e.Asked == "" {
		return "the API server misbehaves: " + e.Did
	}
	return fmt.Sprintf("the API server misbehaves: asked for %q, %s", e.Asked, e.Did)
}

// TooSlowError says that a body arrived too slowly.
type TooSlowError struct {
	Asked string
}

func (e *TooSlowError) Error() string {
	return fmt.Sprintf("asked for %q, the API server sends less than %d KiB in %s", e.Asked, leastBytes>>10, rateWindow)
}

// Timeout implements net.Error.
func (e *TooSlowError) Timeout() bool { return true }

// Temporary implements net.Error.
func (e *TooSlowError) Temporary() bool { return true }

// BusyError says that this process had no memory for an answer in time.
type BusyError struct {
	Asked string
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("there was not enough memory for the answer to %q: other large answers are being read; trying again", e.Asked)
}

// RefusedAddressError says that a host has an address that no API server can have.
type RefusedAddressError struct {
	// OnlyHosts says that the address is refused only to kubeconfigs that tenants write.
	OnlyHosts bool
}

func (e *RefusedAddressError) Error() string {
	if e.OnlyHosts {
		return "the API server's address is a loopback address, or another one that this seed does not allow: see its --allow-cluster-cidrs"
	}
	return "the API server's address is a link-local, multicast or metadata address"
}

// UnsupportedError says that no limits exist here for a call's answer, such as a watch.
type UnsupportedError struct{ Asked string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("requests %q to API servers of user clusters and seeds are not supported", e.Asked)
}

// IsMisbehaviour says whether an error is the API server's fault and would occur again.
func IsMisbehaviour(err error) bool {
	var misbehaves *MisbehavesError
	var slow *TooSlowError
	return errors.As(err, &misbehaves) || errors.As(err, &slow)
}
