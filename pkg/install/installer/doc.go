// Package installer applies one revision of an add-on to one target, and removes it again. It composes the packages
// below (revision, helmrelease, hooks, apply, survey, removal, ownership) and knows neither its callers nor a status: a
// step returns a loop.Outcome, or nil to continue, and stores its findings in the Run. Load and LoadForRemoval return
// an error, since callers distinguish unreadable records from failed calls.
//
// A Run is one reconciliation of one installation. Its caller sets the records, cluster and connection, the requests of
// users (Asked), the decision (revision.Decide) and, before Begin, the objects. All calls about an installation's
// objects are made here; callers may also ask the connection which kinds the user cluster serves.
//
//	step               state of the record          purpose
//	Load               any                          reads the newest record: once, and when it is unknown
//	LoadForRemoval     any                          Load; a missing record is read a second time
//	Reown              any                          gives the records to a recreated Cluster with
//	                                                another UID
//	Amend              any                          changes the record, and not the user cluster
//	CheckRelease       any                          looks for a foreign Helm release of the name
//	ReadIntent         Intent                       returns the recorded objects: none are rendered
//	FindExtras         any                          finds the other objects of an adopted release
//	Begin              any -> Intent                records the objects before they are written
//	PlanRollout        Intent                       counts the objects that Advance has to write
//	Advance            Intent                       writes stage by stage; copies of the pull Secret and
//	                                                early hooks follow the foundation
//	RecordApplied      Intent -> Applied            with the UID of every object
//	WriteRelease       Applied                      the copy that `helm list` shows; revisions made
//	                                                by hand are followed
//	AdoptShared        Applied                      used objects of an installation that was removed
//	RepairDrift        Applied                      compares with the record, repairs differences, and
//	                                                keeps newer content of ours (newer.go)
//	CopyPullSecret     Applied                      the platform's pull Secret, where pods name it
//	ApplySecrets        Applied, or a removal        Secrets with credentials, which are in no inventory (secrets.go,
//	                   that hooks hold              extrasecret.go); FindSecrets and DropSecrets in a removal
//	PostHooks          Applied                      hooks after the writes; LastHooks, if health comes
//	                                                first
//	Assess             Applied                      until everything works, by the version's health
//	                                                rules (health.go)
//	GiveWay            Intent or Applied -> Intent  a rollback, after the deadline
//	GoBack             Intent of a rollback         Advance, from the record alone
//	Prune              Applied                      objects that only earlier revisions had
//	PruneCopies         Applied                      copies of the pull Secret that only those needed
//	PreDelete, RemoveObjects, PostDelete,
//	RemoveNamespaces, DropPullSecret,
//	RemoveRelease, Forget                           the removal, in this order
//
// No step waits. Each may be repeated at any time: the intent is on record before the first write,
// and existing objects are not written again. Repair, rollback and removal work from the record
// alone. If a save fails, or the seed has another record or none, the next reconciliation reads the
// record. State is the memory between reconciliations, and may be lost.
//
// Installations of one add-on in one cluster share cluster-scoped objects (siblings.go).
package installer
