// Package addon is the AddonController: it writes for each user cluster which add-ons fit it, and why the others
// don't.
//
// Reads, on the seed: merged AddonCatalogues in the catalogue namespace, Clusters, the namespaces of clusters
// (metadata), and the metadata of the catalogues that it wrote. It never calls a user cluster.
//
// Writes: for each cluster one AddonCatalogue in its namespace, with the name of cluster.AvailableOf, with role
// available and owned by the Cluster. Its spec has only names, versions and short texts, since a full copy for each
// cluster would multiply etcd's data. Its status lists excluded versions with reasons. It is written by server-side
// apply, because the core add-on controller writes its own part of it. It also writes the AddonInstallations that a
// Cluster requests, and the annotation with these requests.
//
// Two controllers share the work:
//
//	addon-catalogue  reads the merged catalogues when one changes, or once a second during continuous
//	                 changes, decides once for each pair of KKP and Kubernetes version, and enqueues
//	                 the clusters whose offer changed
//	addon            writes one cluster's decision; its requests are those of cluster.Request
//
// A reconciliation of a cluster has the steps of steps.go, each in the file of its name. An annotation with the
// digest is written last, with the generation and the status fields that it belongs to. So an interrupted write and a
// manual edit show in metadata alone, and only metadata is cached. A catalogue that is as decided is not written
// again.
//
// Installations that a Cluster requests (request.go, requests.go) are created once. Entries that can't be carried out
// stay on the Cluster, and an event says why.
//
// A Cluster has no status of ours, so a reconciliation that waits logs the reason. Conditions owned: Ready of
// available catalogues. Nothing is written for a Cluster that is paused or being deleted. The catalogue is deleted
// with its namespace or its Cluster.
//
//rights:seed list,watch namespaces -- cluster namespaces, as metadata
//rights:seed get,list,watch,create,update,patch,control addoncatalogues.kubermatic.k8c.io -- available catalogues
//rights:seed delete addoncatalogues.kubermatic.k8c.io names=available if=kkp-alone -- some API servers require it for changes of an owner
//rights:seed delete addoncatalogues.kubermatic.k8c.io if=cluster-api -- some API servers require it for changes of an owner; the names are those of Clusters
//rights:seed patch addoncatalogues/status.kubermatic.k8c.io -- the status of available catalogues
//rights:seed get,create,control addoninstallations.kubermatic.k8c.io -- installations that a Cluster requests
package addon
