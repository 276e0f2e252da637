// Package fieldsets reads what API servers record of who owns which field of an object
// (managedFields, fieldsV1).
//
// It is pure. A field set comes from a user cluster, so each is read token by token, in time that
// is proportional to its size, in any order of its fields; a field is searched for without building
// a set (ADR 29). A set that can't be read has no fields. What may be recorded of our own is
// bounded by what was sent (Believable). Of what an autoscaler or another client records, no more
// is read than a true set can have.
package fieldsets
