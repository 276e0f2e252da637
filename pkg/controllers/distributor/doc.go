// Package distributor is the AddonCatalogueDistributor: it merges the catalogues of the platform
// namespace and has the result written to every seed, with copies of the AddonSets.
//
// Reads, on the master: authored and generated AddonCatalogues, AddonSets, Seeds with their kubeconfig
// Secrets, Secrets that merged entries name and that are marked for sources, and those that sets name
// and that are marked for values. It never fetches or renders an add-on, and a pass never calls a
// seed.
//
// A Secret goes to seeds for those that its annotation used-by names (ADR 121): versions that need
// another one are not merged, and a set that names one is refused.
//
// Writes, on the master: one ControllerRevision for each authored catalogue with its last valid
// spec; ConfigMap addon-owners, which says whose the add-ons of Custom catalogues are (ADR 119), before
// seeds get what follows from it; once, in ConfigMap addon-seeds, who used Secrets without the
// annotation; and what its rooms write:
//
//	seed    writes to one seed what is wanted: merged catalogues, Secrets, the key of the marks;
//	        ConfigMap addon-seeds has the identity of each seed
//	usage   counts what the installations of a seed say, for ConfigMap addon-usage
//	copies  brings AddonSets to one seed, and reads how far they are
//	fleet   directs the rollouts of AddonSets, and writes their status and finalizer
//	report  writes the status of every catalogue that is authored or generated
//
// Authors of Custom catalogues have a pace (ADR 123): an edit beyond it is not read yet, and what was
// read before counts.
//
// One request stands for all catalogues, since a merge needs all of them. A pass takes the steps of
// steps.go, each in the file of its name. Merging is pure, and skipped where no source changed.
//
// A step that fails ends the pass, which is tried again. After lesser troubles (a kubeconfig that
// can't be read, a revision that can't be written) the pass continues, and is made again ten
// seconds later.
//
//rights:master list,watch addoncatalogues.kubermatic.k8c.io -- catalogues are merged; one in the wrong namespace is told so
//rights:master-platform get,list,watch secrets -- kubeconfigs of seeds, and what goes to the seeds
//rights:master-platform create configmaps -- RBAC can't bind a creation to a name
//rights:master-platform get,update configmaps names=addon-owners -- whose the add-ons of Custom catalogues are
//rights:master-platform get,patch configmaps names=addon-seeds -- who used Secrets before they said who may
//rights:master-platform get,list,create,update,delete controllerrevisions.apps -- the last valid spec of each catalogue
package distributor
