// Package kept renders equal inputs once, and keeps the result.
//
// Callers that ask during a rendering wait for the same one, and later ones get the same objects.
// So certificates and passwords that a chart makes up do not change from one pass to the next. A
// caller waits two seconds at most (Options.Patience); a rendering that takes longer continues
// without it, and wakes it.
//
// Failures are kept as well. One that comes with the input is the answer to all who ask with it.
// One that ended a renderer may be the fault of the machine: it is tried again after five minutes,
// and then after twice as long each time, up to an hour. Other failures (no process could be
// started, the caller left) are not kept.
//
// What is kept is bounded in bytes. The least recently used objects are dropped first. Their
// digests stay longer, so that another result of equal inputs is noticed and its objects are named.
package kept
