// Package loop is the one place where the outcome of a reconcile becomes a status patch and a time
// to come back.
//
// A controller lists its steps; each step reads facts, does one thing and returns nil to continue
// or an Outcome to end the pass. Outcomes are a closed set:
//
//   - Done: everything is as it should be; come back after Recheck, if set.
//   - RetryAt: something failed that may pass; try again after After, for which pkg/backoff has the
//     controller's failures.
//   - Waiting: something else has to happen first; come back when it does, or after Recheck.
//   - Stalled: only an edit helps; nothing is tried until one comes.
//   - Checkpoint: what the pass did is saved before anything else happens; the next pass continues.
//   - NotMine: the object is not this controller's to work on; its status is not written.
//
// Run makes the steps, measures them (metric trellis_step_seconds) and traces them. Failures counts
// failures of passes that have no status to keep the number in.
//
// Start copies the object. The controller projects facts and outcome into the object's conditions
// (its status.go) and reports changes as events. Finish writes what differs from the copy, in one
// status patch at most, and makes the controller-runtime result. Finalizers are set in a patch of
// their own. Nothing here sleeps.
//
// Register adds a controller to a manager. A Census counts the objects of a kind by state and
// reason of their conditions, for metrics.
//
//rights:master,seed create,patch events.events.k8s.io -- what changed is told, beside the object that it is about
package loop
