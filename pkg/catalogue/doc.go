// Package catalogue is what Trellis can decide about catalogues without a call: which spec is
// valid, how many catalogues become one, which versions fit a cluster and which of them is chosen.
// It is pure: no client, no clock, no logger, and the order of the input does not change the
// output.
//
// The way of an add-on through this package:
//
//	AddonCatalogue --Read--> Source --Merge--> Merged --(one object per add-on)--> AddonCatalogue, role merged
//	AddonCatalogue, role merged --NewEntry--> Entry --Available--> what a cluster is offered, and why not the rest
//	                                                --Select-----> the version that an installation gets, or a refusal
//
// Read validates, parses versions and ranges and takes digests once for each generation of a
// catalogue; Merge then only compares. NewEntry does the same for a merged object, so that
// Available and Select parse nothing of it.
//
// Versions are compared in canonical form (see Key); ranges are those of
// github.com/Masterminds/semver. Refusals are types: see refusals.go for those of Select and
// InvalidError for those of Read.
package catalogue
