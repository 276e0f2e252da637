// Package clusters measures what Clusters of Cluster API cost a seed's manager, which is the program itself, and what one of them costs
// its neighbours: what is asked and written when one of twenty goes, while status is written all the time, and where a kind is not to be
// served or has no CRD; the memory of 2,000; and the CPU of 80 charts, which is a bar on pairs of rounds with Clusters of KKP: the median
// of several decides. The tests hold the bars in a short form, the benchmarks for as long as they are meant; `make test-long` has both.
//
// Clusters are objects without Cluster API's manager: what it would write, tests write. Their API servers are a few of a fleet, behind a
// gate that knows each Cluster by its kubeconfig's token, and gives each a UID of namespace kube-system of its own: a manager takes two
// Clusters over one user cluster for a mistake.
package clusters
