// Package ownership says whose the objects of a user cluster are (ADR 47). It is pure: it reads no
// cluster and keeps nothing.
//
// Terms. An Owner is one installation: its ID is its label, its field manager is its name in
// managedFields. An Inventory, kept in the release record on the seed, says which objects are an
// owner's: by UID, with its field set as the API server recorded it. An Entry without a UID is an
// intent. HelmMarks are by what Helm knows the objects of a release. A Sibling is another
// installation of the same add-on, with which what is of the whole cluster is shared (ADR 40).
//
// The one function. Of takes a live object and a Question (who asks, and what its records have of
// the object) and gives an Ownership: whose the object is, one of five answers, with its reasons,
// as one printable value. What may be done with an object is a method of that value (rules.go), so
// that the whole rule is in one place and is one table in the tests:
//
//   - writing: what is Ours or Inherited; what is OfRelease, or a Stranger's under annotation
//     adopt, after adoption
//   - never, also not with annotation adopt: what is Another's, an installation that exists (ADR
//     24)
//   - deleting by record: IsDeletable; leftovers of a Helm release: IsLeftover, IsLeftoverHook
//   - a Namespace of an installation that is gone: IsOrphaned
//   - taking the place of an object for a hook, which deletes it: IsHook, Obstacle
//
// The rules differ where an error would cost more: writing goes on after a crash by an intent and a
// label, deleting a Namespace or a CustomResourceDefinition takes a UID or a field manager.
//
// A label alone is never a reason to write or delete: every user of the cluster can write one.
// Beside a record it finds an object of ours whose field managers were reset; without a record it
// can only refuse something.
package ownership
