// Package catalogue decides about catalogues: which spec is valid, how many catalogues become one,
// which versions fit a cluster and which of them is chosen. It is pure, and the order of the input
// does not change the output.
//
// The way of an add-on through this package:
//
//	AddonCatalogue --Read--> Source --Merge--> Merged --(one object per add-on)--> role merged
//	role merged --NewEntry--> Entry --Available--> what a cluster is offered, and why not the rest
//	                                --Select-----> the version of an installation, or a refusal
//
// Read and NewEntry check, parse and take digests once for each generation of a catalogue, so that
// Merge, Available and Select only compare.
//
// Versions are compared in canonical form (see Key); ranges are those of
// github.com/Masterminds/semver. Refusals are types: refusals.go has those of Select, InvalidError
// is that of Read.
package catalogue
