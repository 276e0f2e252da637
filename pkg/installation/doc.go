// Package installation says what one AddonInstallation is to be and how it stands, for everybody who
// asks: the intent of a controller that makes installations, with the digest that shows that it was
// applied; the state after the last move; the order among the installations of a cluster; and what one
// lacks that an upgrade of Kubernetes waits for. It is pure: the clock is an argument, and nothing is read or written.
package installation
