// Package survey reads the state of an installation's objects in a user cluster. It writes nothing.
//
// Drift. An object that was deleted or replaced, lost fields of ours, or was written by us at another time than
// recorded (ADR 96). A Survey lists metadata once for each kind and round, for all installations of a cluster. The
// lists also show by its version whether a Secret changed. Drift in a list that may be older than the record is
// confirmed by a read. Objects of an unserved kind count as deleted, unless the API server can't say whether the kind
// is served.
//
// Health. Standard.Assess computes it, by the version's rules if it has some, otherwise by kstatus. Workloads that
// were healthy are read with one list for each kind, which the installations of a cluster share. Reassess, for reads
// in short order, reads only unhealthy objects. Explain adds the reasons of pods: exit codes, images and the
// scheduler's message, never a container's output.
//
// The lists of a round keep 24 MiB at most (round.go). A reconciliation waits for a list of another installation no
// longer than its own context lasts.
//
// OfRelease reads the objects of a Helm release that charts may look up.
package survey
