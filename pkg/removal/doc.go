// Package removal deletes objects from a user cluster, and only those of the installation.
//
// Prune deletes what a new inventory no longer has. Namespaces, claims for volumes, CRDs that have
// objects, and more than half of everything are kept until a user approves that very list. Remove
// deletes everything in reverse order, as far as it gets in one call: webhooks and APIServices;
// custom resources while their controller still runs; the rest; CRDs that are unused; the
// namespaces that we made and that hold nothing else (namespace.go). Leftovers are what Helm left
// of a release that is adopted; Inherited is a namespace whose installation is gone.
//
// Package ownership says whose an object is; a label alone is never a reason to delete. Deletes
// carry the UID, so an object that was replaced by another stays. Where the API server can't say
// whether a kind is served, entries of the kind stay, and count neither as pruned nor as removed; a
// namespace in which a kind can't be listed stays.
//
// It waits for nothing: what is still there is in the answer, with what holds it up.
package removal
