// Package kept renders what it does not hold, and keeps the result.
//
// Equal inputs are rendered once, for all who ask. Those who ask while a rendering is under way
// wait for the same one, and later ones get the same objects. So certificates and passwords that a
// chart makes up do not change from one pass to the next. A caller waits two seconds at most
// (Options.Patience); a rendering that takes longer continues without it, and wakes it.
//
// Failures are kept as well. One that comes with the input is the answer to all who ask with it.
// One that ended a renderer may be the fault of the machine: it is tried again after five minutes,
// and then after twice as long each time, up to an hour. Other failures (no process could be
// started, the caller left) are not kept.
//
// What is kept is bounded in bytes. Objects that were not asked for the longest time go first.
// Digests of them stay longer, so that a second rendering of equal inputs that gives something else
// is noticed and its objects are named.
package kept
