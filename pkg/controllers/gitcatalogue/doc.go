// Package gitcatalogue reads the catalogues that are in git repositories: each add-on found there
// becomes a generated AddonCatalogue, and those are what controller distributor merges.
//
// Reads: AddonCatalogues of the platform namespace, their Secrets with credentials, the
// repositories (through the contract of pkg/fetch), and the distributor's ConfigMap addon-usage.
// Writes: the generated catalogues, which it owns, and of the status of a catalogue in git
// condition Fetched, the revision and the counts. The rest of that status is the distributor's;
// each of the two writes with the resourceVersion that it has read, so that neither reverts the
// other's. It never calls a seed.
//
// One pass over a catalogue takes these steps, each in the file of its name:
//
//	list       the generated catalogues that exist
//	fetch      the content, from the store; it asks the repository once per interval, and wakes us
//	unchanged  ends the pass where the same content was read before and its catalogues are unchanged
//	read       files become add-ons; any error refuses the commit
//	plan       pure: what to write and what to remove
//	room       a commit that makes Custom catalogues too large, all together, is refused
//	approve    a commit that removes much waits for an approval of the admin
//	rehearse   every write is tried as a dry run, so that a commit is applied whole or not at all;
//	           only add-ons whose name another catalogue has wait
//	write      what is new or differs
//	remove     what the commit does not have any more
//	remember   what was made of the content, by which the next pass finds it unchanged
//
// When something fails, the generated catalogues stay as they are: a host that is down, a branch
// that is gone, a login page in place of a repository or an unreadable file removes nothing from
// the seeds, also over a restart.
//
// "Not found" is not a deletion: an emptied repository says ArtifactNotFound, or waits for approval
// like any other commit that removes all add-ons.
//
//rights:master list,watch addoncatalogues.kubermatic.k8c.io -- catalogues with a repository
//rights:master-platform get addoncatalogues.kubermatic.k8c.io -- whether a name is taken, past the cache
//rights:master patch addoncatalogues/status.kubermatic.k8c.io -- the status of catalogues
//rights:master-platform create,update,patch,delete,control addoncatalogues.kubermatic.k8c.io -- what is generated from git
//rights:master-platform get,list,watch secrets -- credentials of repositories, and whether they change
//rights:master-platform get configmaps names=addon-seeds -- who used Secrets before they said who may
//rights:master-platform get configmaps names=addon-usage -- which versions are in use
//rights:master-platform get configmaps names=addon-owners -- whose add-ons count
package gitcatalogue
