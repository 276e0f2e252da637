// Package rollout decides which clusters of an AddonSet may move, and when (ADR 60). It is pure: the caller supplies
// the facts about clusters, and the clock.
//
// A set takes these steps in this package, on a seed:
//
//	spec.rollout --NewStrategy--> Strategy (groups in order, the last one "rest")
//	a cluster's labels --GroupOf--> its group; with its state a ClusterStatus --Put--> Tally
//	Strategy, Tally, annotation gate --Decide--> Decision: which clusters may move now, the states of groups, the reason of Ready
//	Tally --Counts, GroupCounts, Troubled, Pending--> the parts of the status
//
// and on the master:
//
//	status of the copies on seeds --> Rows --SelectRows--> Fleet: which rows count
//	Fleet --Gate--> Fleet: how many groups each seed may open, and the fleet's status
//
// Both use one rule (rule.go). The first group with a cluster behind or moving is the one that moves; the next opens
// when none is left. A group in which no cluster has the whole revision is no evidence for the next, nor is one
// without clusters, and more failures than maxFailures in any group stop all moves. Annotation approve opens a group
// that waits for it or lacks evidence, but changes no order and ends no halt. The master evaluates evidence, failures
// of the fleet and approvals: a seed has its gate, its order and its own failures.
//
// A Tally costs O(log n) per event, for any number of clusters n; all its texts and lists are limited. GuardRemovals
// delays removals until they are approved.
package rollout
