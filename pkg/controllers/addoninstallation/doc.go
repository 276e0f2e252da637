// Package addoninstallation installs the add-ons in user clusters that AddonInstallations request,
// maintains them, and removes them.
//
// # Reads and writes
//
// It reads AddonInstallations, the merged catalogue, the Cluster and marked Secrets and ConfigMaps
// on the seed. It writes the installation's status, finalizer and events and, by package installer,
// release records, copies of the platform's pull Secret and the user cluster. It never decides which
// add-ons are installed, and "not found" is never a reason to remove something. A reconciliation waits
// for its own calls, and two seconds at most for a rendering; for nothing else.
//
// # A reconciliation
//
// Reconcile runs the steps listed in steps.go. Each reads facts, does one thing and continues, or
// ends the reconciliation with an outcome. Slow work is done elsewhere and wakes the installation
// when it is finished: the store fetches, the Keeper renders, the connections connect, the user
// cluster establishes CRDs.
//
//	file        steps                        purpose
//	find.go     find-cluster, unpaused,      the Cluster; nothing is paused; KKP's own Addon is gone; the
//	            kkp-addon, share             cluster has not used up its share of the seed
//	complete.go complete                     the namespace that the catalogue names, the Cluster as owner
//	resolve.go  load-record, resolve, values record, version, layers of values
//	data.go                                  template data, and the data of Cluster API for valuesTemplates
//	pinned.go   pinned                       content that only the record has: the rest of the reconciliation
//	fetch.go    fetch                        content from the store
//	connect.go  connect, required            a connection, and the kinds that the version requires
//	compare.go  compare                      inputs equal: no render, no write
//	order.go    order                        the awaited installations are ready
//	awaiting.go                              which installations a change wakes
//	render.go   render, allowed              objects, by package rendering, that are permitted
//	install.go  intent, apply                the installer's steps that need more of the seed; its
//	                                         other steps are in steps.go
//	access.go   access, missing-access,      credentials of agents, and why one is missing
//	            revoke-unlisted
//	revoke.go   revoke-surplus, revoke,      their revocation, also in a removal
//	            revoke-previous,
//	            find-secrets, secrets
//	remove.go   leave, pre-delete, forget    the removal; most steps between are the installer's
//	going.go                                 removals while the Cluster is being deleted
//	preview.go   pinned, of previews         what an installation would become: the steps up to allowed, for the query endpoint
//	history.go                               the revisions on record, and the values in force, for the query endpoint
//	unwritten.go                             the dependencies of previews, which write nothing
//	await.go                                 reconciliations that only read an obstacle
//	report.go                                events
//	facts.go                                 the findings of a reconciliation, in groups by step
//	status.go                                the whole status, from facts and outcome
//	conditions.go                            its conditions, one function for each
//	madefor.go                               in it, the Kubernetes version of the applied objects
//
// A reconciliation first finds the Cluster, also in a removal. The Cluster's name and UID are written
// with the first status, and in any case into status or records before the first remote write; for
// core add-ons into the status first. If a removal finds no Cluster, it removes the finalizer from an
// installation that never had one, or whose Clusters are gone: two reads past caches, half a minute
// apart, did not find them.
//
// While KKP has an Addon of the same name in the cluster, an installation that is not being deleted
// does nothing: KKP would undo it. A foreign Helm release in the user cluster is refused before the
// first write; with annotation adopt it is adopted. Its data counts only as far as the user cluster's
// objects agree.
//
// A first apply waits for other installations by slot and dependsOn, another version for its
// dependencies, a removal for its dependents (package installation decides; ADR 58). All of that is in
// the manager's cache. The wait is recorded before the others are read, and then narrowed to those that
// are named; their changes wake the installation. In a cluster with neither slots nor dependencies no
// others are read.
//
// # Rendering
//
// Template data comes first, since valuesTemplates are rendered from it: the Cluster, the data
// that Platform reads of KKP's other kinds, variables by flag and, for versions of Core catalogues that ask for them,
// the Secrets that the Cluster names. The objects of Cluster API that a valuesTemplate names are read
// before, in the same state as the Cluster; they matter through the values that it renders. Then package
// resolution merges the layers of values. A missing part ends the reconciliation there. A change wakes
// only the installations that read the changed object.
//
// Package rendering renders the objects. The Keeper below it renders in a separate process, keeps
// results and failures by the digest of the inputs, and answers after two seconds at most; a rendering
// that takes longer wakes the installation. Inputs that ended a renderer are retried after minutes. A
// new value of annotation reconcile-at renders a second time to compare: if the objects differ, an event
// names them, and the first rendering is kept.
//
// The catalogue decides which objects add-ons may write, except for the Namespaces of Kubernetes itself
// and the seed's restrictions for Custom catalogues. Applied objects are never refused.
//
// # Decisions
//
// One function decides (revision.Decide), at most three times in a reconciliation: before rendering, by
// the inputs; after rendering, by the objects; and if the wanted version is unavailable. The steps follow
// its decision:
//
//	Keep     nothing is rendered or written; drift is repaired
//	Once     the same; drift is only reported
//	GivenUp  the same, and Ready is False: the wanted revision failed before
//	Hold     the same, if only the record has the wanted content
//	Finish   its intent is applied further, from memory or from the record
//	CarryOn  the intent on record is applied further, from memory or from the record
//	Begin    the wanted revision is rendered, recorded as an intent and applied
//	GoBack   a rollback on record is applied further
//	GiveWay  a rollback is recorded, since the intent was not applied in time
//	Wait     nothing: the wanted revision is unavailable, and there is none to maintain
//
// If a version left the catalogue, values are wrong or a source is unreachable, the reconciliation ends
// with a condition that reports it. The installed version is still maintained, and a rollback continues.
//
// An atomic revision that is not applied and healthy in time is rolled back (ADR 22). It is not tried
// again until the inputs or annotation reconcile-at change. Until then the restored version is reconciled
// like any other, and Ready is False, RolledBack.
//
// # Removal
//
// An installation that is being deleted takes the removal steps instead. The user cluster is not
// called if the Cluster is gone, nothing was applied, or the objects have to stay (deletionPolicy
// Orphan). A Cluster that is not found, and not known to be gone, keeps the finalizer. The finalizer is
// removed once the records are deleted.
//
// While the Cluster is being deleted it is not called either, and other installations do nothing, unless
// the record says Remove (template.onClusterDeletion): then both take the removal steps while the API
// server answers, for ten minutes after the deletion (ADR 94). When that ends, for any reason,
// installations that are being deleted lose the finalizer, and the others stay as they are.
//
// The core add-on controller creates core add-ons. One that is deleted while that controller's
// finalizer protects it is not removed: it is reconciled as before, and condition DeletionBlocked says
// why.
//
// # Agents
//
// Credentials for the hub (pkg/clusters/access) exist before the intent of a revision that asks for them. Every later
// reconciliation restores and renews the recorded ones, also if the version is withdrawn, values are wrong or the
// installation is paused, and their Secrets in the user cluster follow; a removal does so while hooks hold it. Rights
// that the platform no longer lists are revoked first of all. Credentials that only an earlier revision had are revoked
// after its prune, the oldest before it if many revisions never worked, and the rest after a removal. The credentials of
// an installation that is released without a removal are revoked too.
//
// # Queue and memory
//
// target.Ref.Has, of the Cluster that was found, decides which installations belong to a cluster: a namespace may have
// several. Data kept for one cluster, and wake-ups, follow it. Installations wait in a queue that is fair between
// clusters and namespaces, and a reconciliation ends when it exceeds its time (package fairqueue). Steps get the context
// that ends then. Records are read and written in the outer context (NewSavingClient), so that finished work is saved;
// the installation then reports that its cluster did not answer in time. An obstacle that one call can read is read in
// separate reconciliations, which read nothing of the seed past caches and write nothing.
//
// All data in memory may be lost: after a restart the record is read again.
//
// Conditions owned: Ready, Compatible, ValuesResolved, Fetched, Rendered, AccessReady, Applied,
// Healthy, Drifted, DeletionBlocked.
//
//rights:seed get,list,watch,patch,control addoninstallations.kubermatic.k8c.io -- installations are read, and have a finalizer
//rights:seed patch addoninstallations/status.kubermatic.k8c.io -- the status of installations
//rights:seed get,list,watch addonsets.kubermatic.k8c.io -- whether the set of an installation is being deleted
//rights:seed get,list,watch secrets,configmaps -- marked ones hold credentials of sources, values, and the pull Secret
package addoninstallation
