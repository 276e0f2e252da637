// Package crds updates the CustomResourceDefinitions of an API server to those that a program was built with, and
// reports missing parts.
//
// A CRD never loses a part. If the existing one has a version, a field or a value of an enumeration that the program
// does not know, a newer program wrote it, such as that of another chart on the same cluster, or a release that was
// rolled back since. Objects may have such fields, and an older CRD would make the next write drop them; so the
// existing one is not changed. Therefore a release must not remove what an earlier one had: fields stay for as long
// as their version.
//
// CRDs are written by server-side apply with force: Helm, which creates missing ones, owns their fields, and so does
// any user who applied them.
//
// ADR 83 has the reasons.
package crds
