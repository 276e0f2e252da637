// Package fieldsets reads what API servers record of who owns which field of an object (managedFields, fieldsV1).
//
// It is pure. A field set comes from a user cluster, so each is read token by token, in time that is proportional to
// its size, whatever the order of its fields; a field that is looked for is found without a set being built (ADR 29).
// One that can't be read has no fields. What may be recorded of our own is bounded by what was sent (Believable), and what
// an autoscaler or another client says of its own is not read beyond what a true one can say.
package fieldsets
