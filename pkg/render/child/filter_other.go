//go:build linux && !amd64 && !arm64

package child

import "errors"

func filterSystemCalls() error { return errors.ErrUnsupported }
