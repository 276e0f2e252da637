// Package seeds tells stories of an AddonSet on two seeds. The master has an API server and the program of the master manager; each
// seed has an API server, Clusters, and a set controller in a process of its own. Nobody plays what the managers say to each other: only
// KKP and the installation controller are stand-ins (package standins). The master comes to each seed through a gate, which can be shut;
// behind another one, a log has what the seed's controller writes, and judges it by the waves of the seed and by those of the fleet.
// The master manager is killed before and after its writes for sets too (kill_test.go).
package seeds
