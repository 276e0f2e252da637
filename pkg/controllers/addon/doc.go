// Package addon is the AddonController: it writes for each user cluster which add-ons fit it, and
// why the others don't.
//
// Reads, on the seed: merged AddonCatalogues in the catalogue namespace, Clusters, the namespaces
// of clusters (metadata), and the metadata of what it wrote. It never calls a user cluster.
//
// Writes: for each cluster one AddonCatalogue in its namespace, named as cluster.AvailableOf says,
// with role available and owned by the Cluster. Its spec has names, versions and short texts only, since a full
// copy for each cluster would multiply etcd. Its status says what is left out and why. It is written by
// server-side apply, because the core add-on controller writes its own part of it. Besides: the
// AddonInstallations that a Cluster asks for, and the annotation with which it does.
//
// Two controllers share the work:
//
//	addon-catalogue  reads the merged catalogues when one changes, or once a second while changes keep
//	                 coming, decides once for each pair of KKP and Kubernetes version, and enqueues
//	                 the clusters whose offer changed
//	addon            writes one cluster's decision; its requests are those of cluster.Request
//
// A pass over a cluster takes the steps of steps.go, each in the file of its name. An annotation
// with the digest is written last, with the generation and the status fields it stands for. So an
// interrupted write and an edit by hand show in metadata alone, and only metadata is cached. A
// catalogue that is as decided is not written again.
//
// Installations that a Cluster asks for (request.go, requests.go) are made once. Entries that can't
// be followed stay on the Cluster, and an event says why.
//
// A Cluster has no status of ours, so what a pass waits for is logged. Conditions owned: Ready of
// available catalogues. Nothing is written for a Cluster that is paused or being deleted. The
// catalogue is deleted with its namespace or its Cluster.
//
//rights:seed list,watch namespaces -- cluster namespaces, as metadata
//rights:seed get,list,watch,create,update,patch,control addoncatalogues.kubermatic.k8c.io -- available catalogues
//rights:seed delete addoncatalogues.kubermatic.k8c.io names=available if=kkp-alone -- an API server may ask for it of who changes an owner
//rights:seed delete addoncatalogues.kubermatic.k8c.io if=cluster-api -- an API server may ask for it of who changes an owner: they are named after Clusters
//rights:seed patch addoncatalogues/status.kubermatic.k8c.io -- the status of available catalogues
//rights:seed get,create,control addoninstallations.kubermatic.k8c.io -- installations that a Cluster asks for
package addon
