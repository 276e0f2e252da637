// Package catalogue is what Trellis knows about catalogues without asking anybody: which spec is valid, how many
// catalogues become one, which versions fit a cluster and which of them is chosen. It is pure: no client, no clock, no
// logger, and the same input gives the same output whatever order it comes in.
//
// The way of an add-on through this package:
//
//	AddonCatalogue --Read--> Source --Merge--> Merged --(one object per add-on)--> AddonCatalogue, role merged
//	AddonCatalogue, role merged --NewEntry--> Entry --Available--> what a cluster is offered, and why not the rest
//	                                                --Select-----> the version that an installation gets, or a refusal
//
// Read validates, parses versions and ranges and takes digests once for each generation of a catalogue; Merge then only
// compares. NewEntry does the same for a merged object, so that Available and Select never parse.
//
// Versions are told apart canonically (see Key); ranges are those of github.com/Masterminds/semver. Refusals are types:
// see refusals.go for those of Select and InvalidError for those of Read.
package catalogue
