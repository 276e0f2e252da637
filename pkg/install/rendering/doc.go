// Package rendering creates the objects of an installation: those of the chosen version with its values on a cluster,
// ready to be written there. It composes other packages (resolution, render, apply's preparation, revision) and knows
// neither its callers nor any status. It writes nothing.
//
// A Request has all that the objects depend on. Its caller resolved it (package resolution), fetched the content, and
// knows which kinds the cluster serves and which objects are installed there. The only calls to a user cluster are
// those for function lookup.
//
//	Inputs   the hashes that decide whether to render
//	Render   the objects of the next revision
//	Compare  the objects that differ from the installed ones, for equal inputs
//	Allowed  whether an add-on of a Custom catalogue may have the objects
//
// A Trial renders a version before it is installed, for a cluster that does not exist, and reports whether it fails
// for all users (ADR 115).
//
// The Keeper (package render) executes templates. A chart sees a view in addition to the inputs: the revision of its
// Helm release, and the results of function lookup (ADR 37). A chart that reads the served kinds does not see those
// that it brings itself: they would change its inputs.
//
// A Request that no user caused, where only served kinds, the Kubernetes version or the cluster's data changed, keeps
// random parts as recorded (ADR 38).
//
// The error is an *Error if the version, the user cluster or the Keeper caused it; that of Allowed is a
// *NotAllowedError; any other concerns data of the seed. No error has a value.
package rendering
