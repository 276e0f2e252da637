// Package health judges what an add-on's version says of its own health (template.health): rules in
// CEL over objects, and a Lease that the add-on renews. It is pure: others read objects, and tell the
// time.
//
// Rules. CEL with optional fields, without what lets a value grow (language.go, ADR 118); only self is
// declared. Check is for catalogues, within limits for each. Every text is compiled once
// (Programs) and evaluated within limits of cost and time, for each evaluation, for all of a Look, and
// for all of one share: objects and rules may be anybody's. A field that is not there yet is progress,
// and so is a generation that nobody observed; any other error is RuleFailed. A message never sees the
// spec or annotations, where values of users may be.
//
// Leases. What counts is that a Lease moves, by our clock (Beat): the clock of who renews it may be
// wrong, and may be turned back.
package health
