// Package seed writes to one seed what it should have, and reports how far that got.
//
// Each seed has a worker: a goroutine with its own client, its own back-off and its own knowledge
// of the seed. A seed that hangs or is gone delays no other seed. In order, a worker
//
//	connects   one client for one kubeconfig, by pkg/remote: answers and lists are bounded,
//	           redirects are not followed, and a seed's answers are reported in fixed words (state.go)
//	confirms   that the cluster is the one which the Seed's name stands for (identity.go)
//	follows    the seed by one watch, of the copies of AddonSets; once it broke, all is observed again (follow.go)
//	observes   the metadata of what it wrote there, once for each resync interval (session.go)
//	plans      pure: what is wanted against what exists, by digest annotations (plan.go)
//	writes     Secrets first, then merged catalogues with their status; then removes (write.go)
//	copies     AddonSets, by package copies, which the watch stirs between passes too (sets.go)
//	shares     the key of the marks, once all merged catalogues carry one (key.go)
//	counts     installations, at most once a minute, for package usage
//	asks       at the same times, what the seed found out about sources, and says who checks which (checks.go)
//
// The answers to the worker's own writes keep its knowledge current. Beside each digest is the
// generation that it stands for, which shows edits. After a failed write, and every resync
// interval, the seed is listed again, so that edits made by hand are replaced. A seed that is restored while it is on the list is
// found by its watch, which does not outlive its API server: it is tried every ten seconds while it is away, and then has what it lost.
//
// Writes, on a seed: the catalogue namespace where it is missing; in it one AddonCatalogue with
// role merged for each add-on, copies of AddonSets, and of Secrets for sources and values; in the
// platform namespace the key of the marks. Nothing without our labels is overwritten or deleted. On the master: ConfigMap
// addon-seeds. A kubeconfig that leads to another cluster writes nothing until the Seed is
// annotated with confirm-seed.
//
//rights:master-platform create configmaps -- RBAC can't bind a creation to a name
//rights:master-platform get,patch configmaps names=addon-seeds -- the identity of each seed
//rights:distributor get namespaces names=kube-system,addon-catalogue -- which cluster it is, and whether the namespace is there
//rights:distributor-catalogues get,list,create,update,patch,delete,control addoncatalogues.kubermatic.k8c.io -- merged catalogues
//rights:distributor-catalogues patch addoncatalogues/status.kubermatic.k8c.io -- the status of merged catalogues
//rights:distributor-catalogues list,create,update,delete secrets -- what catalogues and sets name
//rights:distributor-platform get,patch configmaps names=addon-source-checks -- what seeds found out about sources
//rights:distributor-platform create secrets -- RBAC can't bind a creation to a name
//rights:distributor-platform get,update secrets names=addon-catalogue-key -- the key of the marks
package seed
