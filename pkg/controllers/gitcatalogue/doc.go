// Package gitcatalogue reads the catalogues that are in git repositories: for each add-on found there it generates an
// AddonCatalogue, which controller distributor merges.
//
// Reads: AddonCatalogues of the platform namespace, their Secrets with credentials, the repositories (through the
// contract of pkg/fetch), and the distributor's ConfigMap addon-usage. Writes: the generated catalogues, which it
// owns, and in the status of a catalogue in git condition Fetched, the revision and the counts. The distributor
// writes the rest of that status; each of the two writes with the resourceVersion that it has read, so that neither
// reverts the other's. It never calls a seed.
//
// One reconciliation of a catalogue has these steps, each in the file of its name:
//
//	list       the generated catalogues that exist
//	fetch      the content, from the store; it asks the repository once per interval, and enqueues the catalogue
//	unchanged  ends the reconciliation if the same content was read before and its catalogues are unchanged
//	read       parses files into add-ons; any error refuses the commit
//	plan       pure: what to write and what to remove
//	limit      a commit that makes Custom catalogues too large, all together, is refused
//	approve    a commit that removes much waits for an approval of the admin
//	rehearse   every write is tried as a dry run, so that a commit is applied as a whole or not at all;
//	           only add-ons whose name another catalogue has wait
//	write      new and changed catalogues
//	remove     catalogues that the commit does not have any more
//	remember   the result for the content, by which the next reconciliation finds it unchanged
//
// When something fails, the generated catalogues stay as they are: a host that is down, a deleted branch, a login
// page in place of a repository or an unreadable file removes nothing from the seeds, also after a restart.
//
// "Not found" is not a deletion: an emptied repository causes ArtifactNotFound, or waits for approval like any other
// commit that removes all add-ons.
//
//rights:master list,watch addoncatalogues.kubermatic.k8c.io -- catalogues with a repository
//rights:master-platform get addoncatalogues.kubermatic.k8c.io -- whether a name is in use, past the cache
//rights:master patch addoncatalogues/status.kubermatic.k8c.io -- the status of catalogues
//rights:master-platform create,update,patch,delete,control addoncatalogues.kubermatic.k8c.io -- catalogues that are generated from git
//rights:master-platform get,list,watch secrets -- credentials of repositories, and whether they change
//rights:master-platform get configmaps names=addon-seeds -- users of Secrets from before the Secrets named them
//rights:master-platform get configmaps names=addon-usage -- which versions are in use
//rights:master-platform get configmaps names=addon-owners -- which catalogue owns each add-on
package gitcatalogue
