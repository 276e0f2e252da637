// Package removal takes objects out of a user cluster, and nothing that is not the installation's.
//
// Prune deletes what a new inventory no longer holds. Namespaces, claims for volumes, CRDs that hold objects, and more
// than half of everything are held back until somebody approves just that. Remove takes everything away in reverse
// order, one pass a call: webhooks and APIServices; custom resources while their controller still runs; the rest; CRDs
// that are unused; the namespaces that we made and that hold nothing of anybody (namespace.go). Leftovers are what Helm
// left of a release that is taken over; Inherited is a namespace whose maker is gone.
//
// Whose an object is says package ownership; a label alone is never a reason to delete. Deletes carry the UID, so an
// object that was replaced by another stays. Of a kind that nobody can tell of, entries are left, and counted neither
// as pruned nor as removed; a namespace in which a kind can't be listed stays.
//
// It waits for nothing: what is still there is in the answer, with what holds it up.
package removal
