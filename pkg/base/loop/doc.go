// Package loop turns the outcome of a reconciliation into a status patch and the time of the next one. No other
// package does.
//
// A controller lists its steps; each step reads facts, does one thing and returns nil to continue or an Outcome to
// end the reconciliation. There are these kinds:
//
//   - Done: all is as desired; reconcile again after Recheck, if set.
//   - RetryAt: a failure may be temporary; try again after Recheck, which pkg/base/backoff computes from the
//     controller's failures.
//   - Waiting: another event has to happen first; reconcile again when it does, or after Recheck.
//   - Stalled: only an edit helps; nothing is tried until an edit, or before Recheck.
//   - Checkpoint: the results so far are saved before anything else happens; the next reconciliation continues.
//   - NotMine: the object does not belong to this controller; its status is not written.
//
// Run executes the steps, measures them (metric trellis_step_seconds) and traces them. Failures counts failures of
// reconciliations that have no status to store the number in.
//
// Start copies the object. The controller projects facts and outcome into the object's conditions (its status.go) and
// reports changes as events. Finish writes the difference from the copy, in at most one status patch, and returns the
// controller-runtime result. Finalizers are set in separate patches. Nothing here sleeps.
//
// Register adds a controller to a manager. A Census counts the objects of a kind by state and reason of their
// conditions, for metrics.
//
//rights:master,seed create,patch events.events.k8s.io -- events about changes, in the namespace of their object
package loop
