// Package report writes the status of each catalogue that people wrote or that was generated.
//
// Passes of the distributor and the workers of seeds record what they know in a ledger: Findings
// for each catalogue, a seed.State for each seed. A controller makes the status of it, by one
// function (statusOf), which is the only writer of conditions Ready, Conflicting, Leaving and
// SourcesReady, of the counts, the conflicts and the rows of seeds. Of a catalogue in git,
// condition Fetched, revision and counts are controller gitcatalogue's; each of the two writes with
// the resourceVersion that it has read.
//
// Changes are gathered for a moment, so that an edit is one status write as a rule, and not one for
// each seed. Events report what is new in a status once it is written.
//
// It calls no seed, and decides nothing about what seeds get.
//
//rights:master list,watch addoncatalogues.kubermatic.k8c.io -- catalogues that have a status
//rights:master patch addoncatalogues/status.kubermatic.k8c.io -- the status of catalogues
package report
