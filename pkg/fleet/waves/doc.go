// Package waves is shared by the two controllers that roll AddonSets out on a seed (ADR 64). It has a cluster's state
// in a set's rollout by its installations (clusterstatus.go and moves.go, pure), the status of the copy (status.go),
// writes that are not in the cache yet (written.go), the place of a cluster for its move (move.go, pure), the start
// of a revision (began.go, pure), and the removals that wait (guard.go, pure).
//
// Each controller decides which installations a set has in a cluster, and passes them as Facts. Package rollout
// decides which clusters move, and when.
package waves
