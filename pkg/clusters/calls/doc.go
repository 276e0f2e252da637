// Package calls makes calls about objects to a user cluster's API server, and decides which answers are accepted.
//
// A Target is one user cluster: clients, and the kinds that are served. Kinds finds the resources of kinds; Each
// makes calls several at a time; EachPage lists; a Client reads and writes metadata in one namespace.
//
// Answers. The API server belongs to a tenant. An answer must be about the requested object, and within limits; a
// list must end, by pages, items, bytes and time. All else is a MisbehavesError, from which no conclusion is drawn
// (ADR 29). Work on an answer takes time in proportion to it, and ends with the context.
//
// Unknown is not deleted. An unserved kind has no objects, unless the API server behind its group is down or
// discovery could not list the group (Target.IsUnknown).
//
// Texts from the user cluster are foreign: messages name objects, fields and owners, are cut, and never repeat the
// content of objects, also in errors (MaskedError). Names are shown: they must not contain secrets. Of messages about
// refused Pods, known parts are repeated (refusals.go).
//
// It decides nothing about objects, and keeps no state between two calls.
package calls
