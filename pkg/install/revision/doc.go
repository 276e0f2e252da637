// Package revision stores what an installation applied, as release records on the seed. They are the truth: the Helm
// release in the user cluster is a copy (package helmrelease).
//
// A record is one revision: the chosen version, its inputs, the rendered objects, and the inventory of the user
// cluster. Uninstall, drift repair and rollback work from it, without the source and without trusting the user
// cluster. An intent is saved before the first remote write, so that after any crash a record names every object that
// may exist.
//
// A record is accepted with the seed's seal (seal.go) and within limits (scan.go), and saved if its objects explain
// the user cluster's answers (bounds.go). Names have 128 bits of the owner's hash (names.go). If the key was lost or
// replaced, all records are sealed again (sealing.go).
//
// Records are Secrets (objects may contain passwords) of type addons.kubermatic.k8c.io/release.v1 in the cluster
// namespace. The Cluster owns them: a new installation of the same name continues them. The parts are written before
// the head, which readers begin with, so no partial record is ever read. The newest five are kept, and the last
// healthy one. Revisions are listed for all installations of a namespace together (package listcache).
//
// Only Decide decides the action for an installation: record, wanted state and observations in, one Decision out
// (decision.go, ADR 49). Every situation is in testdata/decisions.txt.
//
// It never calls a user cluster, never chooses a version, and never decides by a label, which users can write.
//
//rights:seed get,list,create,update,delete secrets -- release records, and the keys that they are sealed with
package revision
