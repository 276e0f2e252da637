// Package installation is what one AddonInstallation's spec and status say, for everybody who asks.
// It is pure.
package installation
