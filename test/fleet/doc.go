// Package fleet starts real Kubernetes control planes for tests, demo and benchmarks: one etcd, any number of API
// servers over it, and on request a controller-manager, a scheduler and fake nodes, on which Deployments get ready
// and Jobs complete. It also runs real sources: git over https, a Helm repository and an OCI registry.
//
// A test package starts one fleet for all its tests:
//
//	func TestMain(m *testing.M) { fleet.Main(m, fleet.ClusterOptions{Name: "seed", Controllers: true}) }
//	... fleet.Shared().Cluster("seed").Config
//
// or one for a single test with ForTest. The programs come from package binaries; `make binaries` builds them.
//
// # Nothing stays behind
//
// Every process is started with a parent-death signal, so the kernel ends it when its owner dies in any way. It has
// its own process group, so that a Ctrl-C in the terminal reaches only the owner, which then stops the processes and
// removes the folder. The parent-death signal is tied to the thread that started a process and not to the owner as a
// whole; therefore one goroutine, locked to its thread, starts all processes of a fleet. An owner that is killed
// leaves its folder; the next start of any fleet finds its lock free and removes it.
//
// Everything listens only on 127.0.0.1. Ports are below the range that the kernel uses for outgoing connections; a
// program that finds its port in use is started again with another.
package fleet
