// Package standalone does on a seed without KKP what KKP's controllers would, as far as add-ons need it: it makes the
// namespace of each Cluster and says in Cluster.status where the namespace is, which version the API server has and
// whether it answers.
//
// It reads Clusters, Secret internal-admin-kubeconfig of their namespaces, and which user cluster each Cluster has; the version of another
// one is not published. It writes Cluster.status (namespaceName
// first, so that whoever sees the namespace can tell whose it is), the namespaces, and finalizer
// kubermatic.k8c.io/cleanup-namespace. In order:
//
//  1. the namespace's name into the status, in a pass of its own
//  2. the namespace, once the one of a former Cluster of that name is gone
//  3. the API server's version and health, every minute and at once when the Secret changes
//
// A deleted Cluster's namespace is deleted, and the Cluster held until it is gone, as in KKP. A Cluster with spec.pause,
// or for controllers with another --worker-name, is left alone.
//
// API servers are never called by a reconcile: a probe runs beside it and brings the object back when it knows. This
// controller never writes to a user cluster, and never runs where KKP does.
package standalone
