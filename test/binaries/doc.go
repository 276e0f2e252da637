// Package binaries builds the programs that tests, demo and benchmarks run: etcd, kube-apiserver in two Kubernetes
// minors, kube-controller-manager, kube-scheduler, kubectl, kwok, the helm CLI and Cluster API's core manager. A third, older API
// server and clusterctl are built for whoever asks for them.
//
// Every program comes as a Go module. Each upstream release has a module of its own below hack/controlplanes, so that
// its dependencies are exactly those of the release and none of them enters the product's go.mod. A built program is
// kept in the cache folder under its version, so it is built once and a new version never meets an old file. Programs
// of Trellis itself are built for each run (own.go).
package binaries
