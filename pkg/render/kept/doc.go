// Package kept renders equal inputs once, and caches the result.
//
// Callers that ask during a rendering wait for the same one, and later ones get the same objects. So certificates and
// passwords that a chart generates do not change between reconciliations. A caller waits at most two seconds
// (Options.Patience); a rendering that takes longer continues without it, and wakes it at the end.
//
// Failures are cached as well. A failure that the input causes is the answer to all callers with that input. If a
// failure ended a renderer, the machine may have caused it: it is tried again after five minutes, and then after
// twice as long each time, up to an hour. Other failures (no process could be started, the caller left) are not
// cached.
//
// The size of cached results is limited. The least recently used objects are dropped first. Their digests stay
// longer, so that a different result of equal inputs is noticed and its objects are named. Renderings for previews have
// an eighth of the space, until a reconciliation asks for them.
package kept
