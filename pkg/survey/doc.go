// Package survey says how what was applied stands in a user cluster. It writes nothing there.
//
// Drift. A Survey finds drift with one metadata list a kind and round, shared by all installations of a cluster, and
// says by its version whether a Secret changed. What looks like drift in a list that may be older than the record is
// read once more. An entry of a kind that is not served went with its kind, unless nobody can tell.
//
// Health. Assess says by kstatus how the objects fare; the Survey's Assess does so with one list a kind of workload;
// Reassess, for looks that follow each other closely, reads only what was not healthy. Explain says by their pods why
// workloads are not well: reasons, exit codes, images and the scheduler's words, never what a container wrote.
//
// Of a list only what is used is kept, and all lists of a round keep at most so much (round.go). Whoever waits for a
// list that another makes waits as long as its own context lasts.
//
// OfRelease reads the objects of a Helm release that charts may look up.
package survey
