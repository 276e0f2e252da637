// Package cluster knows the user clusters of a seed: which one a target.Ref means, whether it is deleted or gone, and the
// connection to its API server.
//
// Finder is the interface over the kind of object that stands for a cluster: rooms find, list, watch and annotate them by it.
// KKPFinder implements it for KKP's Clusters (kkp.go), which Describe describes to all others. The files that read KKP's kinds are
// named in a law (ADR 53); what connects is none of them.
//
// Connections are made outside of reconciles. Get answers at once, with a live Connection or a NotConnectedError, and a
// keeper per cluster connects in the background: it reads the kubeconfig Secret past caches, checks its structure before
// use, asks for the version and the served kinds, and wakes those who asked. A connection whose transport fails is taken
// out at once (one circuit per cluster) and probed with back-off until the API server answers again, so a dead cluster
// never holds a worker. A changed Secret makes a new connection and closes the old one.
//
// A user cluster is known by the UID of its namespace kube-system. Identities keeps on the seed which one a Cluster has
// (ADR 36); a keeper compares with each visit, and hands no connection out to another one, nor to one that another Cluster
// has. What is kept of Clusters that are gone, and have no installations left, is removed (leftidentities.go).
//
// Platform knows what a seed has beside Clusters: KKP's kinds that template data needs, and the kinds that providerRef may
// name. None of them has to be served; each is watched from when it is. Secrets reads what a Cluster itself refers to.
//
// User clusters belong to tenants. Their clients are those of pkg/remote, which bounds all answers while they come; what is kept of
// discovery is bounded here (discovery.go). A cluster that misbehaves is not called at all for a while (offences.go). No
// text of an API server's answer gets into an error of this package.
package cluster
