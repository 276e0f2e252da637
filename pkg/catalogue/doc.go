// Package catalogue decides about catalogues: which spec is valid, how several catalogues are merged, which versions
// fit a cluster and which of them is chosen. It is pure, and the order of the input does not change the output.
//
// An add-on takes these steps in this package:
//
//	AddonCatalogue --Read--> Source --Merge--> Merged --(one object per add-on)--> role merged
//	role merged --NewEntry--> Entry --Available--> the versions for a cluster, and why others are excluded
//	                                --Select-----> the version of an installation, or a refusal
//
// Read and NewEntry check, parse and compute digests once for each generation of a catalogue, so that Merge,
// Available and Select only compare.
//
// Versions are compared in canonical form (see Key); ranges are those of github.com/Masterminds/semver. Refusals are
// types: refusals.go has those of Select, InvalidError is that of Read.
package catalogue
