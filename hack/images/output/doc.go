// Package output hands images out: to folders in OCI's layout, to archives that `docker load`
// takes, to a registry, and as a list of digests.
package output
