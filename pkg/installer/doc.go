// Package installer brings one revision of an add-on to one target, and takes it away again. It
// composes the rooms below (revision, helmrelease, hooks, apply, survey, removal, ownership) and
// knows none of its callers, nor any status or condition: a step answers with a Stop, which is a
// plain value, or with nil to go on, and leaves what it found in the Pass.
//
// A Pass is one pass over one installation. Its caller says which records, cluster and connection
// these are, what people ask (Asked), what is to be done (revision.Decide) and, before Begin, what
// the objects are. All calls about an installation's objects are made here; which kinds the user
// cluster serves its caller may ask of the connection too.
//
//	step               state of the record          what it does
//	Load               any                          reads the newest record: once, and after each doubt
//	CheckRelease        any                          is a Helm release of the name somebody else's?
//	FindExtras           any                          what an adopted release has besides
//	Begin              none or Applied -> Intent    records what will be written, before any of it is
//	Advance            Intent                       writes stage by stage; hooks that come first run
//	                                                behind the foundation
//	RecordApplied      Intent -> Applied            with the UID of every object
//	WriteRelease       Applied                      the copy that `helm list` shows; revisions made
//	                                                by hand are followed
//	Inherit            Applied                      what was used of an installation that went
//	RepairDrift        Applied                      compares with the record, puts back what differs
//	PostHooks          Applied                      hooks that come last; LastHooks, where health
//	                                                comes first
//	Assess             Applied                      until everything works
//	GiveWay            Intent or Applied -> Intent  a rollback, where the time for that is over
//	GoBack             Intent of a rollback         Advance, from the record alone
//	Prune              Applied                      what earlier revisions had besides
//	PreDelete, RemoveObjects, PostDelete,
//	RemoveNamespaces, RemoveRelease, Forget         the removal, in this order
//
// No step waits. Each may be taken again at any time: the intent is on record before the first
// write, and what is there already is not written again. Repair, rollback and removal work from
// the record alone. State is what passes keep in memory, and may be lost.
//
// Installations of one add-on in one cluster share what is of the whole cluster (siblings.go).
package installer
