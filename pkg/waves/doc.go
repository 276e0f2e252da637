// Package waves is what the two controllers that carry AddonSets out on a seed share (ADR 64): how
// a cluster stands in a set's rollout by its installations (standing.go and moves.go, pure), what
// the copy says of it (status.go), what was written and is not in the cache (written.go), who holds
// a place for its move (move.go, pure), when a revision begins (began.go, pure), and which removals
// wait (guard.go, pure).
//
// What a set wants of a cluster is each controller's own: it comes here as Facts. What moves, and
// when, is package rollout's to decide.
package waves
