// Package addon is the AddonController: it writes for each user cluster which add-ons fit it, and
// why the others don't.
//
// Reads, on the seed: merged AddonCatalogues in the catalogue namespace, Clusters, the namespaces
// of clusters (metadata), and the metadata of what it wrote. It never calls a user cluster.
//
// Writes: one AddonCatalogue named available, with role available and owned by the Cluster, in the
// namespace of each cluster. Its spec has names and version strings only, since a full copy for
// each cluster would multiply etcd by the number of clusters; bodies are read in the merged
// catalogue. Its status says what is left out and why, and is written by server-side apply, because
// the core add-on controller writes its own part of it. Besides: the AddonInstallations that a
// Cluster asks for, and the annotation with which it does.
//
// Two controllers share the work:
//
//	addon-catalogue  reads the merged catalogues when one changes, decides once for each distinct pair of KKP and
//	                 Kubernetes version, and enqueues the clusters whose answer changed
//	addon            writes one cluster's decision; its requests are namespaces of clusters
//
// A pass over a cluster takes the steps of steps.go, each in the file of its name. Nothing is
// written where the metadata says that all is as decided: an annotation with the digest is written
// last, with the generation and the status fields it stands for, so an interrupted write and an
// edit made by hand, also one of the status, show in metadata alone. Only that is cached.
//
// Installations that a Cluster asks for (request.go, requests.go) are made once. Entries that can't
// be followed stay on the Cluster, and an event says why.
//
// A Cluster has no status of ours, so what a pass waits for is logged. Conditions owned: Ready of
// available catalogues. A paused cluster is left as it is. So is one that is being deleted: its
// namespace goes, and the catalogue with it; the catalogue also goes where only the Cluster does.
package addon
