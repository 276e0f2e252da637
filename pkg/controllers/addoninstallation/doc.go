// Package addoninstallation makes user clusters have what AddonInstallations ask for, and owns it
// until it is removed.
//
// # Reads and writes
//
// It reads AddonInstallations, the merged catalogue, the Cluster and marked Secrets and ConfigMaps
// on the seed. It writes the installation's status, finalizer and events and, by package installer,
// release records, copies of the platform's pull Secret and the user cluster. It never decides what
// should be installed, and never takes "not found" for a wish to remove something. A pass waits for
// its own calls, and two seconds at most for a rendering; for nothing else.
//
// # A pass
//
// Reconcile runs the steps listed in steps.go; each reads facts, does one thing and either goes on
// or ends the pass with an outcome. What takes long happens elsewhere and wakes the installation
// when it is done: the store fetches, the Keeper renders, the connections connect, the user cluster
// establishes CRDs.
//
//	file        steps                        what they find or do
//	find.go     find-cluster, unpaused,      the Cluster; nothing is paused; KKP's own Addon is gone; the
//	            kkp-addon, share             cluster's share of the seed is not used up
//	complete.go complete                     the namespace that the catalogue names, the Cluster as owner
//	resolve.go  load-record, resolve, values record, version, layers of values
//	data.go                              template data, and what valuesTemplates see of Cluster API
//	pinned.go   pinned                       content that only the record has: the rest of the pass
//	fetch.go    fetch                        content from the store
//	connect.go  connect, required            a connection, and the kinds that the version needs
//	compare.go  compare                      inputs equal: no render, no write
//	order.go    order                        what comes first is as far as it has to be
//	awaiting.go                              who is woken by whom
//	render.go   render, allowed              objects, as they may be written, by package rendering
//	install.go  intent, apply                the installer's, with what they need of the seed; the
//	                                         other steps of the installer are in steps.go
//	access.go   access, access-missing       credentials of agents, and what keeps one from being there
//	revoke.go   surplus-access, old-access,  what is taken back of them, also in a removal
//	            find-kept, kept, revoke
//	remove.go   leave, pre-delete, forget    the removal; most steps between are the installer's
//	going.go                                 the removal of what lives while its Cluster is being deleted
//	await.go                                 passes that only read whether an obstacle is there
//	report.go                                events
//	facts.go                                 what a pass has found, in groups by step
//	status.go                                the status, whole, from facts and outcome
//	madefor.go                               in it, the Kubernetes version that what is applied is for
//
// A pass begins with the Cluster, for a living installation as for one that is removed. Its name
// and UID go into the status with the first status that is written, and in any case into status or
// records before the first remote write; those of core add-ons into the status first. A removal
// that finds no Cluster takes the finalizer off an installation that never had one, or whose
// Clusters are gone: two reads past caches, half a minute apart, did not find them.
//
// While KKP has an Addon of the add-on's name in the cluster, a living installation does nothing at
// all: KKP would undo it. A Helm release in the user cluster that is not this installation's is
// refused before the first write; with annotation adopt it is adopted. What it says of itself
// counts only as far as the user cluster's objects agree.
//
// A first apply waits for neighbours by slot and dependsOn, another version for what it depends on,
// a removal for what depends on it (package installation decides; ADR 58). All of that is in the
// manager's cache. Who waits is noted before the neighbours are read, and narrowed to those that are
// named; their changes wake it. Where a cluster has neither, no neighbour is looked at.
//
// # What is rendered
//
// Template data comes first, since a valuesTemplate is rendered from it: the Cluster, what Platform
// knows of KKP's other kinds, variables by flag and, for versions of Core catalogues that ask, the
// Secrets that the Cluster names. What a valuesTemplate names of Cluster API is read before, and both
// are of one moment; it counts through the values that it makes. Then the layers of values, which package resolution lays
// together. A piece that is missing ends the pass there. A change wakes the installations that read
// what changed, and no others.
//
// Objects are made of all that by package rendering. The Keeper below it renders in a process of
// its own, keeps what came out by the digest of the inputs, failures too, and answers after two
// seconds at the latest; a rendering that takes longer wakes the installation. What took a renderer
// with it is put off for minutes. A new value of annotation reconcile-at renders once more to
// compare: where the objects differ, an event names them, and those that were rendered first stay.
//
// What add-ons may write is decided with their catalogue, save for the Namespaces of Kubernetes
// itself and what the seed keeps from Custom catalogues. What is applied already is never refused.
//
// # What is done
//
// One function decides, three times in a pass at most: before anything is rendered, by the inputs;
// once it is rendered, by the objects; and where what is wanted can't be had (revision.Decide). The
// steps go by its decision:
//
//	Keep     nothing is rendered or written; drift is repaired
//	Once     the same; drift is shown only
//	GivenUp  the same, and Ready is False: what is wanted failed before
//	Hold     the same, where only the record has what is wanted
//	Finish   an intent of that is applied further, from memory or from the record
//	CarryOn  the intent on record is applied further, from memory or from the record
//	Begin    what is wanted is rendered, recorded as an intent and applied
//	GoBack   a rollback on record is applied further
//	GiveWay  a rollback is recorded, since the intent was not applied in time
//	Wait     nothing: what is wanted can't be had, and nothing is there to be kept
//
// A version that left the catalogue, values that are wrong, a source that can't be reached: the
// pass ends with a condition that says so, and what is installed is maintained all the same, and a
// rollback goes on.
//
// An atomic revision that is not applied and healthy in time is rolled back (ADR 22). What failed
// is not tried again until the inputs or annotation reconcile-at change; until then the version
// that is back is reconciled like any other, and Ready is False, RolledBack.
//
// # Removal
//
// An installation that is being deleted takes the removal steps instead. The user cluster is not
// called where the Cluster is gone, nothing was applied, or the objects are to stay
// (deletionPolicy Orphan); a Cluster that can't be found, and is not known to be gone, keeps the
// finalizer. The finalizer is taken off once the records are forgotten.
//
// Where the Cluster is being deleted it is not called either, and installations that live do nothing,
// unless the record says Remove (template.onClusterDeletion): then both kinds take the removal steps
// while the API server answers, for ten minutes since the deletion (ADR 94). Whatever ends that, those
// that are being deleted lose the finalizer, and those that live are left as they are.
//
// Core add-ons are made by the core add-on controller. One that is deleted while that controller's
// finalizer protects it is not removed: it is reconciled as before, and condition DeletionBlocked
// says why it stays.
//
// # Agents
//
// Credentials for the hub (pkg/access) are there before the intent of a revision that asks for them. In every later
// pass, also one that finds the version withdrawn, values wrong or the installation paused, those on record are put
// back and renewed, and their Secrets follow in the user cluster; in a removal as long as hooks hold it. Rights that the
// platform lists no more are taken away first of all. What only an earlier revision had goes behind its prune, the oldest
// before where many revisions never worked, and the rest behind a removal; an installation that is let go without one has
// it revoked too.
//
// # Turns, and between passes
//
// Which installations are of a cluster is decided by target.Ref.Has, of the Cluster that was found:
// a namespace may have several. What is kept of one cluster, and who is woken, goes by that.
// Installations wait in a queue that is fair between clusters and namespaces, and a pass ends when it has taken
// too long (package fairqueue). Steps get the context that ends then. Records are read and written
// in the context outside of it (NewSavingClient), so that what was done is saved; the installation then
// says that its cluster did not answer in time. An obstacle that one call can read is read in
// passes of its own, which read nothing of the seed past caches and write nothing.
//
// What passes keep in memory may be lost: a restart reads the record again.
//
// Conditions owned: Ready, Compatible, ValuesResolved, Fetched, Rendered, AccessReady, Applied,
// Healthy, Drifted, DeletionBlocked.
//
//rights:seed get,list,watch,patch,control addoninstallations.kubermatic.k8c.io -- installations are read, and have a finalizer
//rights:seed patch addoninstallations/status.kubermatic.k8c.io -- the status of installations
//rights:seed get,list,watch addonsets.kubermatic.k8c.io -- whether the set of an installation ends
//rights:seed get,list,watch secrets,configmaps -- marked ones hold credentials of sources, values, and the pull Secret
package addoninstallation
