// Package cli measures kubectl-addons as a process.
package cli
