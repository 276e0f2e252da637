// Package images puts mirrors in place of the registries that rendered objects name, for all
// methods: authors of manifests and charts need not know of mirrors. (KKP's function Image works
// only where an author calls it, and replaces the registry alone, so that equal paths of two
// registries become one.)
//
// A reference is written out in full first, so that a rule for docker.io meets "nginx" too. The
// rule with the longest match counts; what comes after the match, tag and digest stay as they are.
// A reference below a rule's target is left alone.
//
// It reads where Kubernetes' own kinds have pods: containers of all sorts and volumes from images.
// What a custom resource does with an image is not known here, and is left to its values.
package images
