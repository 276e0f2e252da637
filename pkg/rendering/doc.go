// Package rendering makes the objects of an installation: what a chosen version comes to with its
// values on a cluster, ready to be written there. It composes rooms below (resolution, render,
// apply's preparation, revision) and knows none of its callers, nor any status. It writes
// nothing.
//
// A Request is all that the objects depend on. Its caller resolved it (package resolution), fetched
// the content, and says which kinds the cluster serves and what is installed there. Nothing but
// calls for function lookup goes to a user cluster.
//
//	Inputs   the hashes that say whether anything is to be rendered
//	Render   the objects of the next revision
//	Compare  what comes out otherwise than what is installed, of equal inputs
//	Allowed  whether an add-on of a Custom catalogue may have the objects
//
// A Trial renders a version before anybody installs it, for a cluster that does not exist, and says
// whether it fails for everybody (ADR 115).
//
// Rendering itself is the Keeper's (package render). What a chart sees besides the inputs is a
// view: the revision of its Helm release, and what function lookup finds (ADR 37). A chart that
// asks for the kinds that are served does not see those that it brings itself: they would change
// its inputs.
//
// A Request that nobody asked for, since only served kinds, the Kubernetes version or the cluster's
// data are others, keeps what only chance changes as it is on record (ADR 38).
//
// Errors are an *Error where the version, the user cluster or the Keeper is at fault; that of
// Allowed is a *NotAllowedError; any other is about what the seed has. None holds a value.
package rendering
