// Package helmrelease shows what an installation applied as a Helm release in the user cluster: a
// copy, for people and for the helm program. The truth is the record on the seed (package
// revision).
//
//   - Release is what helm shows of a revision (release.go); Object gives it Helm's own form,
//     without templates and files of the chart (state.go).
//   - Write stores it as Helm's Secrets driver does, marks earlier revisions as superseded and
//     deletes old ones (write.go, driver.go). Remove deletes all of them.
//   - Find reads the newest revision of a release that no record knows, and whose it is; Adopt
//     makes its revisions ours, by their label alone (foreign.go). FindByHand finds revisions of
//     our release that were made with helm by hand (byhand.go, ADR 41).
//
// The user cluster is never trusted: a release is read for the objects that it names while it is
// unpacked, within limits of bytes, parts and depth (walk.go, stored.go, manifest.go).
//
// It never runs hooks, never decides whether a release may be adopted, and writes only Secrets.
package helmrelease
