// Package child renders in processes of our own binary, so that a template can harm only its own rendering.
//
// Templates are foreign programs: they call themselves without end, create texts of gigabytes, or trigger a bug in a
// parser. A process can't stop that internally: a template can't be cancelled, and exhausted stack or memory ends the
// whole program. So the manager starts its own program again, as a child that only renders, and ends it when it
// exceeds a limit.
//
// # The child
//
// It has an empty environment, "/" as its folder, its own process group and three pipes: for requests, for answers
// and for the last messages of the Go runtime, which give the cause of its death and are shown to no user. It has
// nothing else of the manager: no descriptor, no credentials, no path. Content comes as bytes over the pipe. Before
// it reads the first byte it confines itself (confine_linux.go): no more data memory than RLIMIT_DATA, no files,
// first to be killed when the machine runs out of memory, and a system call filter that allows only memory, threads,
// clocks and its pipes. It ends when its pipe closes, and by a signal of the kernel when the manager dies.
//
// # The parent
//
// The Pool assigns children. It keeps them in places (places.go): one for each concurrent rendering, and one more. A
// child has a place from its start to its end, and a place has one state, so no child is lost, ended twice or one too
// many.
//
// The pool reads a busy child's memory and processor time in /proc a hundred times a second (watch.go,
// usage_linux.go). It kills the child past its limit, at its timeout, and when no caller waits any more. A child's
// answers are trusted as little as its templates: the size, depth and number of values of every message are checked
// before it is decoded (answer.go); texts are cut, and values are removed from them again.
//
// # Who shares a child
//
// A rendering must not influence a later one. A child renders for one tenant only, a limited number of times, and is
// replaced after any failure, or if it died while it waited. One child without a tenant is always kept ready, so that
// a rendering does not wait for a process to start. One tenant never has all children at a time, and its callers do not
// delay those of others (ADR 16).
//
// # Other systems
//
// Limits of memory and of processor time, the filter, and the end with the parent's death need Linux. Elsewhere, for
// work on the managers and not for production, a child has its wall clock limit, an empty environment and its pipes.
package child
