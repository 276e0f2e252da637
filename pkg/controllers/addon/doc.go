// Package addon is the AddonController: it tells each user cluster which add-ons fit it, and why the others don't.
//
// Reads, on the seed: merged AddonCatalogues in the catalogue namespace, Clusters, the namespaces of clusters (metadata),
// and the metadata of what it wrote. It never talks to a user cluster.
//
// Writes: one AddonCatalogue named available, with role available, in the namespace of each cluster. Its spec has names
// and version strings only, since a full copy for each cluster would multiply etcd by the number of clusters; bodies are
// looked up in the merged catalogue. Its status says what is left out and why, and is written by server-side apply,
// because the core add-on controller writes its own part of it.
//
// Two controllers share the work:
//
//	addon-catalogue  reads the merged catalogues when one changes, decides once for each distinct pair of KKP and
//	                 Kubernetes version, and asks for the clusters whose answer changed
//	addon            brings one cluster's available catalogue to what was decided
//
// One pass over a cluster takes these steps: find (is it ours to handle, does it have a usable namespace?), decide, and
// write where the metadata does not say that all is as decided. An annotation with the digest is written last, with the
// generation it stands for, so an interrupted write and an edit made by hand both show in metadata alone.
//
// A paused cluster is left as it is. So is one that is being deleted: its namespace goes, and the catalogue with it.
package addon
