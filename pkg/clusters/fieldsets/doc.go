// Package fieldsets reads which manager owns which field of an object (managedFields, fieldsV1). It is pure.
//
// Field sets come from a user cluster: each is read token by token, in time in proportion to its size, and fields are
// searched for without building a set (ADR 29). An unreadable set has no fields. The recorded part of our own set is
// bounded by the bytes sent (Believable); a set of others that is larger than real ones is ignored. A Merge computes
// the result of server-side apply for an object.
package fieldsets
