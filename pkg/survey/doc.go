// Package survey reads how the objects of an installation are in a user cluster. It writes nothing
// there.
//
// Drift. A Survey finds drift with one metadata list for each kind and round, shared by all
// installations of a cluster, and says by its version whether a Secret changed. What looks like
// drift in a list that may be older than the record is read once more. An entry of a kind that is
// not served is gone with its kind, unless the API server can't say whether the kind is served.
//
// Health. Assess finds health by kstatus. The Survey's Assess does so with one list for each kind
// of workload; Reassess, for reads that follow each other closely, reads only what was not healthy.
// Explain says by their pods why workloads are not healthy: reasons, exit codes, images and the
// scheduler's words, never what a container wrote.
//
// Of a list only what is used is kept, and all lists of a round keep 24 MiB at most (round.go). A
// pass that waits for a list that another installation makes waits no longer than its own context
// lasts.
//
// OfRelease reads the objects of a Helm release that charts may look up.
package survey
