// Package copies writes AddonSets to one seed, and reads their status there.
//
// A Keeper belongs to the session of one seed's worker. In the catalogue namespace it writes one copy for each valid
// set, with label role=copy, the set's digest and age, the seed's name, its gate, the token of approved removals, and
// a mark over all of that (catalogue.SetMark), so that a seed accepts only copies that the distributor wrote.
// Finalizer and status of a copy belong to the seed; all other fields are restored when other clients change them.
// The copies are known from one list of metadata, a watch from there (pkg/clusters/remote), and one read of each changed copy:
// unchanged copies cause no call.
//
// A copy is deleted for one reason: an Order to delete its set, which package fleet gives for a set that is being
// deleted. Before that, the copy is annotated confirm-deletion, which the mark covers. A set that is missing on the
// master removes nothing: such copies stay, and the objects that they need.
//
// The status from a seed is limited to what a real one can have (row.go): it counts for that seed.
//
//rights:distributor-catalogues get,list,watch,create,update,patch,delete,control addonsets.kubermatic.k8c.io -- copies of sets
package copies
