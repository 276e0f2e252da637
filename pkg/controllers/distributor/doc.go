// Package distributor is the AddonCatalogueDistributor: it merges the catalogues of the platform namespace and has
// the result written to every seed, with copies of the AddonSets.
//
// Reads, on the master: authored and generated AddonCatalogues, AddonSets, Seeds with their kubeconfig Secrets,
// Secrets that merged entries name and that are marked for sources, and those that sets name and that are marked for
// values. It never fetches or renders an add-on, and a reconciliation never calls a seed.
//
// A Secret is copied to seeds for the users that its annotation used-by names (ADR 121): versions that need another
// Secret are not merged, and a set that names one is refused.
//
// Writes, on the master: one ControllerRevision for each authored catalogue with its last valid spec; ConfigMap
// addon-owners with the owners of Custom catalogues' add-ons (ADR 119), before seeds get the results; once, in
// ConfigMap addon-seeds, the users of Secrets from before the annotation; and the writes of its packages:
//
//	seed    writes to one seed: merged catalogues, Secrets, the key of the marks;
//	        ConfigMap addon-seeds has the identity of each seed
//	usage   counts the add-on versions of a seed's installations, for ConfigMap addon-usage
//	copies  writes AddonSets to one seed, and reads their status there
//	fleet   directs the rollouts of AddonSets, and writes their status and finalizer
//	report  writes the status of every authored or generated catalogue
//
// The edits of Custom catalogues' authors are limited in pace (ADR 123): an edit beyond the limit is not read yet,
// and the previous content counts.
//
// There is one request for all catalogues, since a merge needs all of them. A reconciliation has the steps of
// steps.go, each in the file of its name. Merging is pure, and skipped if no source changed.
//
// A step that fails ends the reconciliation, which is retried. After partial failures (a kubeconfig that can't be
// read, a revision that can't be written) the reconciliation continues, and is repeated ten seconds later.
//
//rights:master list,watch addoncatalogues.kubermatic.k8c.io -- catalogues are merged; one in the wrong namespace gets a warning
//rights:master-platform get,list,watch secrets -- kubeconfigs of seeds, and Secrets that are copied to seeds
//rights:master-platform create configmaps -- RBAC can't bind a creation to a name
//rights:master-platform get,update configmaps names=addon-owners -- which Custom catalogue owns each add-on
//rights:master-platform get,patch configmaps names=addon-seeds -- users of Secrets from before the Secrets named them
//rights:master-platform get,list,create,update,delete controllerrevisions.apps -- the last valid spec of each catalogue
package distributor
