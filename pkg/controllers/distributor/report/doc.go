// Package report writes the status of each authored or generated catalogue.
//
// Reconciliations of the distributor and the workers of seeds record their results in a ledger: Findings for each
// catalogue, a seed.State for each seed. A controller derives the status from it, by one function (statusOf), which
// is the only writer of conditions Ready, Conflicting, Leaving and SourcesReady, of the counts, the conflicts and the
// rows of seeds. For a catalogue in git, controller gitcatalogue writes condition Fetched, revision and counts; each
// of the two writes with the resourceVersion that it has read.
//
// Changes are collected for a moment, so that an edit usually causes one status write, and not one for each seed.
// After a status is written, its changes are reported as events.
//
// It calls no seed, and decides nothing about the objects on seeds.
//
//rights:master list,watch addoncatalogues.kubermatic.k8c.io -- catalogues that have a status
//rights:master patch addoncatalogues/status.kubermatic.k8c.io -- the status of catalogues
package report
