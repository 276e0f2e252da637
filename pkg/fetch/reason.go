package fetch

import (
	"errors"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Reason is the reason of condition Fetched for an error. OfSource reports that the error is about the source, and
// not about Trellis itself.
func Reason(err error) (reason string, ofSource bool) {
	var (
		missing      *NotFoundError
		refused      *RefusedError
		notServed    *NotServedError
		unauthorized *UnauthorizedError
		unavailable  *UnavailableError
	)
	switch {
	case errors.Is(err, ErrNoSpace):
		return v1.ReasonFetchFailed, false
	case errors.As(err, &missing):
		return v1.ReasonArtifactNotFound, true
	case errors.As(err, &refused):
		return v1.ReasonArtifactRefused, true
	case errors.As(err, &notServed):
		return v1.ReasonSourceNotServed, true
	}
	return v1.ReasonFetchFailed, errors.As(err, &unauthorized) || errors.As(err, &unavailable)
}
