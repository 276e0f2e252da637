// Package ownership says who owns the objects of a user cluster (ADR 47). It is pure.
//
// Terms. An Owner is one installation: its ID is its label, and is in its field manager. An
// Inventory, in the release record on the seed, has an owner's objects by UID, each with its field
// set; an Entry without a UID is an intent. HelmMarks identify the objects of a Helm release. A
// Sibling is another installation of the same add-on, with which cluster-scoped objects are shared
// (ADR 40).
//
// Of takes a live object and a Question (the owner that asks, and its records of the object)
// and returns an Ownership: who owns the object, with the evidence, as one printable value. Its
// methods (rules.go) are the whole rule, which is one table in the tests:
//
//   - write: Ours and Inherited; OfRelease, or with annotation adopt a Stranger's, after adoption
//   - never write, even with adopt: Another's, of an installation that exists (ADR 24)
//   - delete by record: IsDeletable; leftovers of a Helm release: IsLeftover, IsLeftoverHook
//   - a Namespace of a deleted installation: IsOrphaned
//   - replace an object by a hook's, which deletes it: IsHook, Obstacle
//
// Deletion needs more than writing: a label and an intent suffice to continue writing after a
// crash, but not to delete a Namespace or a CustomResourceDefinition. A label alone is never a
// reason to write or delete: every user of the cluster can write one.
package ownership
