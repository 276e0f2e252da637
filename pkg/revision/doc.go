// Package revision keeps what an installation applied, as release records on the seed. They are the
// truth: the Helm release in the user cluster is a copy (package helmrelease).
//
// A record is one revision: what was chosen, what it was made from, the objects as rendered, and
// the inventory of what is in the user cluster. Uninstall, drift repair and rollback work from it,
// without the source and without trusting the user cluster. An intent is saved before the first
// remote write, so that a crash at any point leaves a record that names every object which may
// exist.
//
// A record is accepted if it carries the seal of the seed (seal.go), and decoded within the bounds
// of what is written (scan.go). It is saved if its objects explain what the user cluster answered
// (bounds.go). Records from before the seal are sealed once (sealing.go). Names of records have 128
// bits of the owner's hash; former ones had 40 (names.go).
//
// Records are Secrets (objects may hold passwords) of type addons.kubermatic.k8c.io/release.v1 in
// the cluster namespace, owned by the Cluster and not by the installation: an installation made
// anew under an old name takes its predecessor's record over. A record is written as its parts
// first and its head last, and read by its head, so a half-written one is never seen. The newest
// five are kept, and the one that was healthy last. Which revisions there are is asked for all
// installations of a namespace together (package listcache).
//
// What is to be done about an installation is decided here too, and nowhere else: Decide has the
// record, what is wanted and what was seen in, and one Decision out (decision.go, ADR 49). Every
// situation is in testdata/decisions.txt.
//
// It never calls a user cluster, never chooses a version, and never decides by a label, which
// people can write.
package revision
