//go:build !linux

package child

// confine has nothing to take away on systems that managers are only worked on.
func confine(order) ready { return ready{} }
