// Package health evaluates the rules of an add-on's version for its own health (template.health): rules in CEL over
// objects, and a Lease that the add-on renews. It is pure: callers read objects, and pass the time.
//
// Rules. CEL with optional fields, without features that let a value grow (language.go, ADR 118); only self is
// declared. Check is for catalogues, within limits for each. Every text is compiled once (Programs) and evaluated
// within limits of cost and time: for each evaluation, for all of a Look, and for all of one share, since objects and
// rules may come from any tenant. A missing field is progress, and so is a generation that no controller observed
// yet; any other error is RuleFailed. A message never sees the spec or annotations, which may have values of users.
//
// Leases. A Lease counts if it changes, by our clock (Beat): the clock of the client that renews it may be wrong, and
// may be turned back.
package health
