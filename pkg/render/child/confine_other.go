//go:build !linux

package child

// confine does nothing on systems without production use.
func confine(order) ready { return ready{} }
