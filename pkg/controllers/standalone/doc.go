// Package standalone does on a seed without KKP what KKP's controllers would, as far as add-ons
// need it: it makes the namespace of each Cluster, and says in Cluster.status where the namespace
// is, which version the API server has and whether it answers.
//
// It reads Clusters, the kubeconfig Secret of their namespaces, and which user cluster each Cluster
// has; the version of another user cluster is not published. It writes Cluster.status
// (namespaceName first, so that all readers of the namespace know whose it is), the namespaces, and
// finalizer kubermatic.k8c.io/cleanup-namespace. In order (steps.go):
//
//  1. name: the namespace's name into the status, in a pass of its own
//  2. namespace: it is made, once the one of a former Cluster of that name is gone
//  3. kubeconfig: the pass ends here until its Secret is there
//  4. health: the API server's version and health, every minute and when the Secret changes
//
// A deleted Cluster's namespace is deleted, and the Cluster stays until it is gone, as in KKP. A
// Cluster with spec.pause, or of another --worker-name, is not touched.
//
// A reconcile never calls an API server: a probe runs beside it and enqueues the object when it
// ends. This controller never writes to a user cluster, and never runs where KKP does.
//
//rights:seed list,watch namespaces -- cluster namespaces, as metadata
//rights:seed get,create,delete namespaces if=standalone -- cluster namespaces are made where KKP does not
//rights:seed patch clusters.kubermatic.k8c.io if=kkp -- the finalizer of a Cluster
//rights:seed patch clusters/status.kubermatic.k8c.io if=standalone -- the status of a Cluster, where KKP does not write it
package standalone
