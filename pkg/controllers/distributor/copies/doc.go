// Package copies brings AddonSets to one seed, and reads there how far they are.
//
// A Keeper belongs to the session of one seed's worker. In the catalogue namespace it writes one copy
// for each set that is valid, with label role=copy, the set's digest and age, the seed's name, its
// gate, the word of removals that are approved, and a mark over all that (catalogue.SetMark), so that
// a seed believes only what the distributor wrote.
// Finalizer and status of a copy are the seed's; all else is put back where others change it. What
// is there is told by one list of metadata, by a watch from there (pkg/remote), and by one read of
// each copy that changed: nothing is asked for what stays as it is.
//
// A copy is deleted for one cause: an Order to delete its set, which package fleet gives for a set
// that it sees being deleted. It is annotated confirm-deletion, which is marked, before. A set that
// is missing on the master takes nothing away: such copies stay, and what they need.
//
// What a seed says of itself is cut to what a real one can say (row.go): it counts for that seed.
//
//rights:distributor-catalogues get,list,watch,create,update,patch,delete,control addonsets.kubermatic.k8c.io -- copies of sets
package copies
