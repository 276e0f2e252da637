// Package calls makes the calls to a user cluster's API server that are about objects, and decides
// which answers are accepted. The rooms that apply, survey and remove are built on it.
//
// A Target is one user cluster: clients, and the kinds that are served. Kinds finds where objects
// of a kind are; Each makes calls several at a time; EachPage lists; a Client reads and writes
// metadata in one namespace.
//
// Answers. The API server belongs to a tenant. An answer about an object has to be about that
// object and to have what an object can have; a list has to end, by pages, items, bytes and time.
// An answer beyond that is a MisbehavesError, from which nothing is concluded (ADR 29). All work on
// an answer takes time in proportion to it, and ends with the context.
//
// Not known is not gone. A kind that is not served is gone with its objects, unless the API server
// behind its group is down or discovery could not list the group's kinds (Target.IsUnknown).
//
// Texts. All text from the user cluster is foreign: messages name objects, fields and owners, are
// cut, and don't repeat what the objects hold, neither in a refusal nor in the error of a call that
// failed (MaskedError). Names are shown: they are no place for secrets.
//
// It decides nothing about objects, and keeps nothing between two calls.
package calls
