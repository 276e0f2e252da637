// Package helmrelease shows what an installation applied as a Helm release in the user cluster: a
// copy, for people and for the helm program. The truth is the record on the seed (package
// revision).
//
// What it does:
//
//   - Release is what helm shows of a revision, and what becomes of it by an action (release.go).
//     Object gives it Helm's own form, without templates and files of the chart (state.go).
//   - Write stores it as Helm's Secrets driver does, marks earlier revisions as superseded and
//     deletes old ones; an equal one costs no write (write.go, driver.go). Remove deletes all of
//     them.
//   - Find reads the newest revision of a release that no record knows, and whose it is; Adopt
//     makes its revisions ours, by their label alone (foreign.go). FindByHand finds revisions of
//     our release that were made with helm by hand (byhand.go, ADR 41).
//
// What the user cluster holds is never trusted, and never kept: a release is read while it is
// unpacked, with bounds in bytes, parts and depth (walk.go, stored.go, manifest.go), for the
// objects that it names.
//
// It never runs hooks, never decides whether a release may be adopted, and writes no objects but
// Secrets of the release.
package helmrelease
