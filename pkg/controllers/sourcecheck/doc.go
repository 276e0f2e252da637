// Package sourcecheck looks at the sources of versions before anybody installs them.
//
// Of the merged catalogues' versions, each source that this seed has to check is resolved, fetched and
// looked at once: whether the chart, or the folder with manifests, is there, and what the version renders
// to with its own values and its form's defaults (look.go). It is rendered by a rendering.Trial, in one
// child at a time that no installation waits for. What needs values of a user, or a cluster, is good
// without that. Content that failed is rendered again once it, or the version, is another. What was good is
// not asked for again while a catalogue has it; what was not is tried again, after a minute up to an
// hour, or up to a day where a server answered and the content is wrong. The catalogues take turns: of
// each one source is checked at a time, and few of all, so that thousands of slow sources of one delay no
// other's (turns.go). The store is of this package alone, with its own network: no fetch of an installation
// waits for a check, and no content is displaced by one.
//
// Reads merged catalogues, and Secrets of sources. Writes ConfigMap addon-source-checks in the platform
// namespace (report.go), where the distributor reads what was found, and says which seeds share in the
// checks: each source has one of them (catalogue.CheckerOf). A manager that starts goes on from there.
// ADR 115 says why.
//
//rights:seed get configmaps -- what was found about sources, and who shares in that
//rights:seed-platform create,update configmaps -- what was found about sources
package sourcecheck
