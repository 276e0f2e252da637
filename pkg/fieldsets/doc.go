// Package fieldsets reads which manager owns which field of an object (managedFields, fieldsV1). It
// is pure.
//
// Field sets come from a user cluster: each is read token by token, in time in proportion to its
// size, and fields are searched for without building a set (ADR 29). An unreadable set has no
// fields. What is recorded of our own is bounded by what was sent (Believable); of others, a set
// that is larger than real ones is ignored. A Merge computes what server-side apply makes of an
// object.
package fieldsets
