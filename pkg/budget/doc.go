// Package budget bounds the memory that a cache takes for objects of tenants and authors. Admission bounds them too, but not while it is
// busy or down (ADR 10). An object for which there is no room is held as a stub: without its content, marked with its size. Controllers
// refuse a stub with a reason, and leave what was made of it before as it is (ADR 122).
//
// A Budget is the Transform of a cache. client-go calls it with each object as it comes, also while a first list streams in, so that no
// more than one object is whole in memory beyond the budget. That needs API servers with feature WatchList, on by default from 1.34.
//
// What a pass writes of a stub are patches of what differs from what it read: status, finalizers, fields of its own. The status of a stub
// is whole. Clients of package loop refuse to replace an object by its stub.
package budget
