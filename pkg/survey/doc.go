// Package survey reads the state of an installation's objects in a user cluster. It writes nothing.
//
// Drift. What is gone, replaced, lost fields of ours, or was written by us at another time than is
// on record (ADR 96). A Survey lists metadata once for each kind and round, for all installations of a cluster.
// The lists also show by its version whether a Secret changed. Drift in a list that may be older
// than the record is confirmed by a read. Objects of a kind that is not served are gone, unless the
// API server can't say whether the kind is served.
//
// Health. Standard.Assess computes it, by rules where a version has some, else by kstatus; of what was
// healthy with one list for each kind of workload, which the installations of a cluster share.
// Reassess, for reads in short order, reads only what was not healthy. Explain adds the reasons of
// pods: exit codes, images and the scheduler's message, never a container's output.
//
// The lists of a round keep 24 MiB at most (round.go). A pass waits for a list of another
// installation no longer than its own context lasts.
//
// OfRelease reads the objects of a Helm release that charts may look up.
package survey
