// Package usage knows which versions of add-ons the installations of all seeds have, and what they
// say of their sources.
//
// A Count is what one seed answers: a table of the columns that its installations print, read in
// bounded pages, without values and statuses. Only versions that the seed is given, or that
// clusters are to leave, have figures of their own; all others of a seed are one number. Of sources
// the reason of condition Ready counts (ADR 43).
//
// The Ledger has the last Count of every seed and keeps it in ConfigMap addon-usage, where every
// replica's admission reads it (ADR 11). Seeds share the ConfigMap equally. Figures of a seed that
// does not answer stay, with the time of the last answer; those of a deleted Seed are dropped.
//
// A seed whose installations can't be counted is not reported as failing.
//
//rights:master-platform create configmaps -- RBAC can't bind a creation to a name
//rights:master-platform get,patch configmaps names=addon-usage -- what the installations of seeds use
//rights:distributor list addoninstallations.kubermatic.k8c.io -- which versions installations use
package usage
