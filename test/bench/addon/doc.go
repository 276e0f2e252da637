// Package addon measures the AddonController: what a catalogue edit costs for 10,000 clusters, how large an available
// catalogue gets, and how long a version bump of one of 1,000 clusters takes. `make bench` prints the figures; where a bar is
// set on one, the benchmark fails when it is missed.
//
// Sizes and times are taken on a real API server. 10,000 clusters with 5,000 versions each would fill an etcd with
// gigabytes, so for them a stand-in keeps what the API server would keep, equal specs once, and counts what it is asked. The
// controller with its caches then runs in a process of its own, whose peak memory the kernel tells.
package addon
