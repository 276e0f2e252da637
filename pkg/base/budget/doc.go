// Package budget bounds the memory that a cache takes for objects of tenants and authors. Admission bounds them too, but not while it is
// busy or down (ADR 10). An object for which there is no space is cached as a stub: without its content, marked with its size.
// Controllers refuse a stub with a reason, and leave objects that were made from it before as they are (ADR 122).
//
// A Budget is the Transform of a cache. client-go calls it with each object that arrives, also while a first list is streamed, so that
// no more than one object is whole in memory beyond the budget. That needs API servers with feature WatchList, on by default from 1.34.
//
// For a stub, reconciliations write only patches of fields that differ from what they read: status, finalizers, their own fields. The
// status of a stub is whole. Clients of package loop refuse to replace an object by its stub.
package budget
