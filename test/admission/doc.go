// Package admission holds the tests of what the charts' policies let whom do, on API servers of either Kubernetes minor and
// without any manager: rights must not hang on one.
package admission
