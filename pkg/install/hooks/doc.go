// Package hooks runs the hooks of an installation: objects of a chart, or Jobs and Pods of
// go-template, that are created around an action, one after the other, and waited for.
//
// A Set is the recorded state of a revision's hooks and their events. Runner.Run advances one event as
// far as possible without waiting:
//
//  1. after a failure: apply the delete policies once, wait for the pause to end, begin the next
//     attempt;
//  2. each hook in Helm's order: read its object, remove an earlier one, create it, assess it
//     (attempt.go);
//  3. at the end: apply the delete policies; the event has ended.
//
// Runner.Stop ends running hooks when the release is removed, Runner.Clear deletes leftovers of
// go-template's hooks once no event waits for them (attempt.go).
//
// The caller saves the Set before each change that the user cluster could not show later. An
// annotation identifies an object that was created just before the process ended. Objects of hooks
// are in no inventory: they are never repaired and never pruned. The calls are those of pkg/install/apply.
//
// It never sleeps, never decides when an event is due, and knows no records.
package hooks
