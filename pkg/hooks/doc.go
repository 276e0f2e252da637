// Package hooks runs the hooks of a Helm release: objects of a chart that are made around an action
// of it, one after the other, and waited for.
//
// A Set is what is on record of a revision's hooks: what they are, and how far their events have
// come. Runner.Run takes one event as far as it goes without waiting:
//
//  1. after a failure: follow the delete policies once, wait for the pause to end, begin the next
//     attempt;
//  2. each hook in Helm's order: read its object, make room for it, make it, see how it fares
//     (attempt.go);
//  3. at the end: what goes by its policy goes, and the event is over.
//
// Runner.Stop ends what still runs where the release is removed (attempt.go).
//
// The Set is saved before each change that could not be read from the user cluster afterwards. An
// object that was made just before the process ended is known by its annotation. Objects of hooks
// are in no inventory: they are never repaired and never pruned. The calls to the user cluster are
// those of pkg/apply.
//
// It never sleeps, never decides when an event is due, and knows no records: its caller saves the
// Set.
package hooks
