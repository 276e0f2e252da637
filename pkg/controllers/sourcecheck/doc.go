// Package sourcecheck checks the sources of versions before users install them.
//
// Of the merged catalogues' versions, each source in this seed's share is resolved, fetched and checked once: whether
// it has the chart, or the folder with manifests, and whether the version renders with its own values and its form's
// defaults (look.go). A rendering.Trial renders it, in one child at a time that no installation waits for. A version
// that needs values of a user, or a cluster, is good without being rendered. Failed content is rendered again when
// the content, or the version, changes. A good source is not requested again while a catalogue has it; a bad one is
// retried after a minute up to an hour, or up to a day if a server answered and the content is wrong. The catalogues
// take turns: one source of each is checked at a time, and few in total, so that thousands of slow sources of one
// delay no other's (schedule.go). This package has its own store, with its own network: no fetch of an installation
// waits for a check, and no content is displaced by one.
//
// Reads merged catalogues, and Secrets of sources. Writes ConfigMap addon-source-checks in the platform namespace
// (report.go), where the distributor reads the findings, and writes which seeds share the checks: each source has one
// checker (catalogue.CheckerOf). A manager that starts continues from there. ADR 115 gives the reasons.
//
//rights:seed get configmaps -- results of checks of sources, and the seeds that share them
//rights:seed-platform create,update configmaps -- results of checks of sources
package sourcecheck
