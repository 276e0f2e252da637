// Package waves is what the two controllers that carry AddonSets out on a seed share (ADR 64): how a
// cluster stands in a set's rollout by its installations (standing.go, pure), what the copy says of
// it (status.go), and what was written and is not in the cache (written.go). Controller addonset uses
// the last of these only: its clusters have removals that are guarded, and presence that may be unknown.
//
// What moves, and when, is package rollout's to decide.
package waves
