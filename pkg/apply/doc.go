// Package apply is the one engine that puts objects into a user cluster, keeps them there and takes them away again. Both
// methods, go-template and helm, end in it.
//
// Use. Prepare makes rendered objects fit for a cluster; it is pure. A Rollout writes those that differ from
// what was applied last, in stages; Advance goes as far as it
// can without waiting, and is called again until Progress.Complete. Assess tells how the objects fare, and Reassess, at looks
// that follow each other closely, how those do that were not healthy. Prune removes what a new inventory no longer holds, a
// Survey finds drift with one metadata list a kind, the same Survey tells with one list a kind whether workloads are well, and
// by its version whether a Secret changed; Repair puts back what drifted, and Remove takes everything away in reverse order,
// one pass a call. Namespaces spare rollouts that begin together a look each at the same namespace.
// Explain says by their pods why workloads are not well, and an Obstacle is looked at with one call until it is out of the way.
//
// Ownership. An Inventory, kept in the release record on the seed, says which objects are ours: by UID, with our field set as
// the API server recorded it. Labels in the user cluster are never a reason to delete, save for an object that the record plans
// and of which it has no UID yet. An object that is not in the inventory is written only if there is none of its name
// (create.go, ADR 25); one that exists is read, and taken only if it carries our field manager, or our label where the record
// intends it. All writes are server-side apply with one field manager an installation, without force; force is for repairing
// fields that are recorded as ours, and for replicas that the add-on has changed (ADR 39).
//
// Sharing. What is of the whole cluster is shared between the installations of one add-on: one owns it, the others use it, as
// their records say (Siblings); it passes on without being deleted (share.go, ADR 40).
//
// Not known is not gone. An entry of a kind that is not served went with its kind, and is put back with it where it is to be
// there, unless the API server behind its group is down or discovery could not tell the group's kinds: then it is left, and
// neither pruned nor counted as removed. A namespace in which a kind can't be listed stays.
//
// Waits. A definition that is not established is looked at again for as long as it takes; after a minute the note says so with
// the API server's reason. Webhook configurations come last; a call that fails while their backend is down is an error, and
// the next Advance goes on where it stopped.
//
// Texts. Everything that comes from the user cluster is foreign: messages name objects, fields and owners, are cut, and
// don't repeat what the objects hold, neither in a refusal nor in the error of a call that failed (MaskedError). Names are told:
// they are no place for secrets.
//
// Answers. The API server belongs to a tenant. An answer about an object has to be about that object and to have what an object can
// have; a list has to end, by pages, items, bytes and time, and of its items only what is used is kept; field sets are recorded up to
// what the object that was sent explains. What goes beyond is a MisbehavesError, from which nothing is concluded. Whatever runs over an
// answer takes time in proportion to it, and ends with the context, as waiting for another's list does (ADR 29).
//
// It knows client-go and nothing of our controllers; it sleeps nowhere, and keeps no goroutine after a call returns.
package apply
