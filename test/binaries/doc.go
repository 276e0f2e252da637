// Package binaries builds the programs that tests, demo and benchmarks run: etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler, kubectl, kwok and helm, and for some of them an older minor of Kubernetes, Cluster API and clusterctl.
//
// Every program comes as a Go module. Those of the newer minor are one module, hack/controlplanes/newer, whose versions are
// the product's: a package that one program compiled is not compiled again for the next, nor for the product. A test holds
// the versions equal. The others are modules of their own. None of their dependencies enters the product's go.mod.
//
// A built program is kept in the user's cache folder, under a digest of its versions, flags and release of Go, so all
// checkouts share it and a new version never meets an old file. Programs of Trellis itself are kept there by the
// content of the checkout, and built once for all tests (own.go). No test builds a program of others: those that only
// few tests need are built by name (modules.go).
//
// The package imports the standard library only: it is compiled before anything else, and shows the progress of the rest.
package binaries
