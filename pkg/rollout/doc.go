// Package rollout decides which clusters of an AddonSet may move, and when (ADR 60). It is pure:
// the caller brings what is known of clusters, and the clock.
//
// The way of a set through this package, on a seed:
//
//	spec.rollout --NewStrategy--> Strategy (groups in order, the last one "rest")
//	a cluster's labels --GroupOf--> its group; with its state a Standing --Put--> Tally
//	Strategy, Tally, annotation gate --Decide--> Decision: who may move now, how groups stand, the reason of Ready
//	Tally --Counts, GroupCounts, Troubled, Pending--> the parts of the status
//
// and on the master:
//
//	status of the copies on seeds --> Rows --SelectRows--> Fleet: which rows count
//	Fleet --Gate--> Fleet: how many groups each seed may open, and the fleet's status
//
// Both go by one rule (rule.go). The first group with a cluster behind or moving is the one that
// moves; the next opens when none is left. A group in which no cluster has all of the revision is no
// evidence for the next, one without clusters neither, and more failures than maxFailures in any
// group let nothing move.
// Annotation approve opens a group that waits for it or lacks evidence, but changes no order and
// ends no halt. Evidence, failures of the fleet and approvals are the master's to judge: a seed has
// its gate, its order and its own failures.
//
// A Tally costs O(log n) an event, whatever the number of clusters; all texts and lists in it are
// bounded. GuardRemovals holds removals back until somebody approves them.
package rollout
