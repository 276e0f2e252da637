// Package child renders in processes of our own binary, so that a template can harm only its own
// rendering.
//
// Templates are foreign programs: they call themselves without end, make texts of gigabytes, or hit
// a bug in a parser. A process can't stop that inside of itself: a template can't be cancelled, and
// a stack or a memory that runs out ends the whole program. So the manager starts itself again, as
// a child that only renders, and ends it when it takes more than it may.
//
// # The child
//
// It has an empty environment, "/" as its folder, a process group of its own and three pipes: for
// requests, for answers and for the last words of the Go runtime, which say what it died of and are
// shown to no user. It has nothing else of the manager: no descriptor, no credentials, no path.
// Content comes as bytes over the pipe. Before it reads the first byte it confines itself
// (confine_linux.go): no more data memory than RLIMIT_DATA, no files, first to be killed when the
// machine runs out of memory, and a system call filter that allows memory, threads, clocks and its
// pipes only. It ends when its pipe closes, and by a signal of the kernel when the manager dies.
//
// # The parent
//
// The Pool hands out children. It keeps them in places (places.go): as many as renderings at a
// time, and one more. A child has a place from its start to its end, and a place has one state, so
// no child is lost, ended twice or one too many.
//
// The pool reads a busy child's memory and processor time in /proc a hundred times a second
// (watch.go, usage_linux.go) and kills it past its limit, as it does when time is up or when no
// caller waits any more. A child's answers are trusted as little as its templates: every message
// has limits of size, depth and number of values, before it is decoded (answer.go); texts are cut,
// and values taken out of them again.
//
// # Who shares a child
//
// A rendering must not influence a later one. A child renders for one tenant only, a limited number
// of times, and is replaced after any failure, or if it died while it waited. One child without a
// tenant is always kept ready, so that a rendering does not wait for a process to start. One tenant
// never has all children at a time (ADR 16).
//
// # Other systems
//
// Limits of memory and of processor time, the filter, and the end with the parent's death are
// Linux. Elsewhere, for work on the managers and not for production, a child has its wall clock, an
// empty environment and its pipes.
package child
