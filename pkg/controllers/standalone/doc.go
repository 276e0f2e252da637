// Package standalone replaces KKP's controllers on a seed without KKP, as far as add-ons need it: it creates the
// namespace of each Cluster, and writes the namespace's name, the API server's version and whether it answers into
// Cluster.status.
//
// It reads Clusters, the kubeconfig Secret of their namespaces, and which user cluster each Cluster has; the version
// of another user cluster is not published. It writes Cluster.status (namespaceName first, so that all readers of the
// namespace know its owner), the namespaces, and finalizer kubermatic.k8c.io/cleanup-namespace. In order (steps.go):
//
// 1. name: the namespace's name into the status, in a reconciliation of its own 2. namespace: it is created, once
// that of a previous Cluster of the same name is deleted 3. kubeconfig: the reconciliation ends here until its Secret
// exists 4. health: the API server's version and health, every minute and when the Secret changes
//
// A deleted Cluster's namespace is deleted, and the Cluster stays until that is finished, as in KKP. A Cluster with
// spec.pause, or of another --worker-name, is not changed.
//
// A reconciliation never calls an API server: a probe runs concurrently and enqueues the object when it ends. This
// controller never writes to a user cluster, and never runs together with KKP.
//
//rights:seed list,watch namespaces -- cluster namespaces, as metadata
//rights:seed get,create,delete namespaces if=standalone -- cluster namespaces are created if KKP does not
//rights:seed patch clusters.kubermatic.k8c.io if=kkp -- the finalizer of a Cluster
//rights:seed patch clusters/status.kubermatic.k8c.io if=standalone -- the status of a Cluster, if KKP does not write it
package standalone
