// Package helmrelease shows an installation's objects as a Helm release in the user cluster: a
// copy, for users and for the helm program. The record on the seed is authoritative (package revision).
//
//   - Release is helm's view of a revision (release.go); Object converts it to Helm's own form,
//     without templates and files of the chart (state.go).
//   - Write stores it as Helm's Secrets driver does, marks earlier revisions as superseded and
//     deletes old ones (write.go, driver.go). Remove deletes all of them.
//   - Find reads the newest revision of a release that no record knows, and its owner; Adopt
//     makes its revisions ours, by their label alone (foreign.go). FindByHand finds revisions of
//     our release that users made with helm (byhand.go, ADR 41).
//
// The user cluster is never trusted: the objects that a release names are read while it is unpacked,
// within limits of bytes, parts and depth (walk.go, stored.go, manifest.go).
//
// It never runs hooks, never decides whether a release may be adopted, and writes only Secrets.
package helmrelease
