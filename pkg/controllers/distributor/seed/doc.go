// Package seed writes the desired objects to one seed, and reports the result.
//
// Each seed has a worker: a goroutine with its own client, its own back-off and its own memory of the seed. A seed
// that hangs or is down delays no other seed. In order, a worker
//
//	connects   one client for one kubeconfig, by pkg/clusters/remote: answers and lists are bounded,
//	           redirects are not followed, and a seed's answers are reported as fixed texts (state.go)
//	confirms   that the cluster is the one of the Seed's name (identity.go)
//	follows    the seed by one watch, of the copies of AddonSets; once it broke, the seed is observed again (follow.go)
//	observes   the metadata of the objects that it wrote there, once for each resync interval (session.go)
//	plans      pure: compares wanted with existing objects, by digest annotations (plan.go)
//	writes     Secrets first, then merged catalogues with their status; then removes (write.go)
//	copies     AddonSets, by package copies, also between reconciliations when the watch has events (sets.go)
//	shares     the key of the marks, once all merged catalogues carry one (key.go)
//	counts     installations, at most once a minute, for package usage
//	asks       at the same times, for the seed's findings about sources, and writes which seed checks which (checks.go)
//
// The answers to the worker's own writes update its memory. With each digest it stores the generation that the digest
// belongs to, which shows edits. After a failed write, and every resync interval, the seed is listed again, so that
// manual edits are replaced. If a seed is restored during that time, its watch shows it, since no watch outlives its
// API server: a seed that is away is tried every ten seconds, and then gets the lost objects.
//
// Writes, on a seed: the catalogue namespace if it is missing; in it one AddonCatalogue with role merged for each
// add-on, copies of AddonSets, and of Secrets for sources and values; in the platform namespace the key of the marks.
// An object without our labels is never overwritten or deleted. On the master: ConfigMap addon-seeds. With a
// kubeconfig that leads to another cluster, nothing is written until the Seed is annotated with confirm-seed.
//
//rights:master-platform create configmaps -- RBAC can't bind a creation to a name
//rights:master-platform get,patch configmaps names=addon-seeds -- the identity of each seed
//rights:distributor get namespaces names=kube-system,addon-catalogue -- the identity of the cluster, and whether the namespace exists
//rights:distributor-catalogues get,list,create,update,patch,delete,control addoncatalogues.kubermatic.k8c.io -- merged catalogues
//rights:distributor-catalogues patch addoncatalogues/status.kubermatic.k8c.io -- the status of merged catalogues
//rights:distributor-catalogues list,create,update,delete secrets -- Secrets that catalogues and sets name
//rights:distributor-platform get,patch configmaps names=addon-source-checks -- the seeds' checks of sources
//rights:distributor-platform create secrets -- RBAC can't bind a creation to a name
//rights:distributor-platform get,update secrets names=addon-catalogue-key -- the key of the marks
package seed
