// Package installation has the shared rules about one AddonInstallation: the intent of a controller that creates
// installations, with the digest that shows that it was applied; the state after the last move; the order among the
// installations of a cluster; and which installations an upgrade of Kubernetes waits for. It is pure: the clock is an
// argument, and nothing is read or written.
package installation
