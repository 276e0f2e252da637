// Package crds brings the CustomResourceDefinitions of an API server up to those that a program was
// built with, and says what is missing there.
//
// A CRD loses nothing. Where the one that is there has a version, a field or a value of an
// enumeration that the program does not know, a newer program brought it, such as that of another
// chart on the same cluster, or that of a release which was taken back since. Objects may have such
// fields, and an older CRD would have them dropped with the next write; so it is left as it is. A
// release must not take away what an earlier one had, then: fields stay for as long as their version.
//
// CRDs are written by server-side apply with force: Helm, which makes them where they are missing,
// owns their fields, and so does whoever applied them by hand.
//
// ADR 83 has the reasons.
package crds
