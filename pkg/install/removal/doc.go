// Package removal deletes objects of an installation from a user cluster.
//
// Prune deletes objects that a new inventory lacks. Namespaces, volume claims, CRDs with objects, and more than half
// of everything need a user's approval of exactly that list. Remove deletes everything in reverse order: webhooks and
// APIServices; custom resources while their controller still runs; the rest; unused CRDs; our namespaces without
// objects of others (namespace.go). Leftovers are objects of an adopted Helm release; Inherited is a namespace whose
// installation is deleted.
//
// Package ownership decides about owners; a label alone is never a reason to delete. Deletes carry the UID, so a
// replaced object stays. If the API server can't say whether a kind is served, its entries stay, and a namespace in
// which a kind can't be listed waits, or stays.
//
// It waits for nothing: the answer has the objects that still exist, and the reasons.
package removal
