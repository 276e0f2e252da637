// Package installer brings one revision of an add-on to one target, and removes it again. It
// composes the rooms below (revision, helmrelease, hooks, apply, survey, removal, ownership) and
// knows none of its callers, nor any status or condition: a step answers with a Stop, which is a
// plain value, or with nil to continue, and leaves what it found in the Pass. Load and
// LoadForRemoval answer with an error, since callers tell records that can't be read from calls
// that failed.
//
// A Pass is one pass over one installation. Its caller says which records, cluster and connection
// these are, what people ask (Asked), what is to be done (revision.Decide) and, before Begin, what
// the objects are. All calls about an installation's objects are made here; which kinds the user
// cluster serves its caller may ask of the connection too.
//
//	step               state of the record          what it does
//	Load               any                          reads the newest record: once, and after doubt
//	LoadForRemoval     any                          Load; where there was none it reads once more
//	Reown              any                          gives the records to a Cluster that came back
//	                                                with another UID
//	Amend              any                          changes the record, and not the user cluster
//	CheckRelease       any                          is a Helm release of the name somebody else's?
//	ReadIntent         Intent                       gives the objects on record: none are rendered
//	FindExtras         any                          what an adopted release has besides
//	Begin              any -> Intent                records what will be written, before it is
//	PlanRollout        Intent                       counts what Advance has to write
//	Advance            Intent                       writes stage by stage; copies of the pull Secret and
//	                                                hooks that come first are behind the foundation
//	RecordApplied      Intent -> Applied            with the UID of every object
//	WriteRelease       Applied                      the copy that `helm list` shows; revisions made
//	                                                by hand are followed
//	AdoptShared        Applied                      what was used of an installation that went
//	RepairDrift        Applied                      compares with the record, puts back what differs, and
//	                                                leaves content of ours that is newer (newer.go)
//	CopyPullSecret     Applied                      the platform's pull Secret, where pods name it
//	KeepSecrets        Applied, or a removal        Secrets with credentials, which are in no inventory (kept.go,
//	                   that hooks hold              besides.go); FindKept and DropKept in a removal
//	PostHooks          Applied                      hooks that come last; LastHooks, where health
//	                                                comes first
//	Assess             Applied                      until everything works, by what its version says
//	                                                of that (health.go)
//	GiveWay            Intent or Applied -> Intent  a rollback, where the time for that is over
//	GoBack             Intent of a rollback         Advance, from the record alone
//	Prune              Applied                      what earlier revisions had besides
//	DropFormer         Applied                      copies of the pull Secret that only those needed
//	PreDelete, RemoveObjects, PostDelete,
//	RemoveNamespaces, DropPullSecret,
//	RemoveRelease, Forget                           the removal, in this order
//
// No step waits. Each may be repeated at any time: the intent is on record before the first write,
// and what is there already is not written again. Repair, rollback and removal work from the record
// alone. Where a save fails, or the seed has another record than the pass, or none, the next pass
// reads the record. State is what passes keep in memory, and may be lost.
//
// Installations of one add-on in one cluster share what is of the whole cluster (siblings.go).
package installer
