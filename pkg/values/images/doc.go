// Package images replaces registries by mirrors in rendered objects, for all methods: authors of manifests and charts
// need not know of mirrors. (KKP's function Image works only if an author calls it, and replaces only the registry,
// so that equal paths of two registries become one.)
//
// A reference is expanded first, so that a rule for docker.io also matches "nginx". The rule with the longest match
// counts; the rest after the match, tag and digest do not change. A reference below a rule's target does not change.
//
// It covers the pods in Kubernetes' own kinds: containers of all sorts and volumes from images. It does not know the
// images of custom resources: set these by their values.
package images
