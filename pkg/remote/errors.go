package remote

import (
	"errors"
	"fmt"
)

// MisbehavesError says what an API server did that no API server of a cluster does: an answer, a list or a pass beyond every
// limit, or bytes that nobody asked for. It holds no text of an answer, and is fit for a condition.
type MisbehavesError struct {
	// Asked is what it was asked for: "GET /apis/apps/v1/deployments". Empty where nothing was asked.
	Asked string
	// Did in words: "the answer has more than 1000000 values".
	Did string
}

func (e *MisbehavesError) Error() string {
	if e.Asked == "" {
		return "the API server misbehaves: " + e.Did
	}
	return fmt.Sprintf("the API server misbehaves: asked for %q, %s", e.Asked, e.Did)
}

// TooSlowError says that the body of an answer did not come at the least rate.
type TooSlowError struct {
	// Asked as in MisbehavesError.
	Asked string
}

func (e *TooSlowError) Error() string {
	return fmt.Sprintf("asked for %q, the API server sends less than %d KiB in %s", e.Asked, leastBytes>>10, rateWindow)
}

// Timeout makes it a net.Error that is a timeout.
func (e *TooSlowError) Timeout() bool { return true }

// Temporary completes net.Error.
func (e *TooSlowError) Temporary() bool { return true }

// BusyError says that this process had no room for an answer in time: it reads as much as it may. No API server is to blame.
type BusyError struct {
	// Asked as in MisbehavesError.
	Asked string
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("there was no room for the answer to %q: other large answers are being read; tried again", e.Asked)
}

// RefusedAddressError says that a host is at an address where no API server is.
type RefusedAddressError struct{}

func (e *RefusedAddressError) Error() string {
	return "the API server's address is a link-local, multicast or metadata address"
}

// UnsupportedError says that a call asks for something whose answer has no limits here, such as a watch.
type UnsupportedError struct{ Asked string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%q is not asked of API servers that others control", e.Asked)
}

// IsMisbehaviour says whether an API server is to blame for an error in a way that asking again at once repeats.
func IsMisbehaviour(err error) bool {
	var misbehaves *MisbehavesError
	var slow *TooSlowError
	return errors.As(err, &misbehaves) || errors.As(err, &slow)
}
