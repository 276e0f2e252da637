// Package kept renders what it does not hold, and keeps what came out.
//
// Equal inputs are rendered once, whoever and however many ask: those who ask while a rendering goes on wait for the same
// one, and later ones get the same objects. So certificates and passwords that a chart makes up do not change from one pass
// to the next. An asker waits for a short while only; a rendering that takes longer goes on without them, and wakes them.
//
// Failures are kept as well. One that comes with the input is given to everybody who asks with it. One that took a renderer
// with it may have been the machine's: it is tried again after five minutes, and then after twice as long each time, up to
// an hour. What is neither (no process could be started, the asker left) is not kept.
//
// What is kept is bounded in bytes. Objects that were not asked for the longest time go first; digests of them stay longer,
// so that a second rendering of equal inputs that gives something else is noticed and its objects are named.
package kept
