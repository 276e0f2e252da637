// Package sets kills the set controller of a seed with kill -9 before and after every write that it makes, and checks that the waves are
// kept to over all processes, and that the end is the same. It is to AddonSets what package crash is to installations; how it kills
// stands there.
//
// Each run has a set, a catalogue namespace and four Clusters of its own, the first of which is the canary; package standins plays KKP, the
// distributor and the installation controller. A story has phases: what is edited, and when it is over. It is told once without a kill;
// the writes that came by then are the boundaries, all of which, or some with -short, another run comes to on either side. Where a
// controller was killed, the next one is started, and goes on with the phase. A gate keeps the log of both, in which no more clusters may
// move than have places, none of a later group before an earlier one is done, and none after a halt.
//
// Two more stories have processes that compete for a lease (stopped_test.go): one that was stopped in the middle of a wave and goes on
// when another is done, and two that lead at the same time.
//
// The status of a set is written as often as there is something to say and time has gone by; a boundary of it that isn't come by again is
// counted and is no failure; any other is.
package sets
