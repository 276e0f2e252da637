// Package distributor is the AddonCatalogueDistributor: it merges the catalogues of the platform namespace and brings the
// result to every seed.
//
// Reads, on the master: authored and generated AddonCatalogues, Seeds with their kubeconfig Secrets, Secrets that merged
// entries name and that are marked for sources. Reads, on a seed: the UID of namespace kube-system, the key of its marks, and
// the metadata of what it wrote there. It never fetches or renders an add-on.
//
// Writes, on the master: the status of every AddonCatalogue that is not somebody's copy (conditions Ready, Conflicting,
// Leaving and SourcesReady, counts, conflicts, one row for each seed), one ControllerRevision for each
// authored catalogue with its last valid spec,
// ConfigMap addon-seeds with the identity of each seed, and ConfigMap addon-usage with the number of its installations by
// version, for admission. Writes, on a seed: the catalogue namespace where it is missing,
// in it one AddonCatalogue with role merged for each add-on, and copies of source Secrets; and in the platform namespace the key of
// the marks on merged catalogues, once all of them carry one (key.go). Nothing that lacks our labels is overwritten or deleted.
//
// One pass (Reconcile; one request stands for all catalogues, since a merge needs all of them) takes these steps:
//
//	read       catalogues become sources; what is invalid is replaced by its last valid spec
//	leave      which versions of core add-ons clusters are to leave
//	remember   the last valid specs are kept in ControllerRevisions
//	merge      pure; skipped where no source changed
//	tell       versions whose content changed are told
//	hand on    marked Secrets that the merged entries name
//	discover   Seeds become targets with a kubeconfig
//	dispatch   each target's worker gets what is wanted; workers of Seeds that went are ended
//	tidy       ControllerRevisions that are not the last any more go
//
// Each seed has a worker: a goroutine with its own client, its own back-off and its own picture of the seed. The picture
// is metadata, listed once at connect and kept up with the answers to the worker's own writes; plan.go compares it with
// what is wanted by our digest annotation; the generation that the digest stands for is beside it, so that an edit made
// while nobody looked shows too. The picture is made anew when a write fails and every resync interval, so that
// edits made by hand are put back. A seed that hangs or is gone holds up nobody else.
//
// A second controller writes the status of each catalogue from the board, on which passes and workers leave what they
// know. Status changes are gathered for a moment, so that an edit is one status write as a rule and not one for each seed.
//
// After each pass, at most once a minute, a worker also counts the installations on its seed, from a table of their columns: by
// version, of those that the seed is given; of all others their number. Seeds share the ConfigMap equally.
//
// What installations say of their sources comes with the same count, by a column of theirs: no seed is asked more for it (ADR 43).
//
// A seed may be compromised. Its client is one of pkg/remote: answers and lists are bounded, redirects lead nowhere, and what it
// answers is told in fixed words.
//
// A seed is told from another one by the UID of its kube-system namespace, kept at first contact. A kubeconfig that leads
// to another cluster writes nothing until the Seed is annotated with confirm-seed.
package distributor
