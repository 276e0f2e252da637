// Package usage counts which versions of add-ons the installations of all seeds have, and which problems with sources
// they report.
//
// A Count is read from one seed: a table of the columns that its installations print, in bounded pages, without
// values and statuses. Only versions that the seed is given, or that clusters must leave, have separate figures; all
// others of a seed are one number. Problems with sources come from the reason of condition Ready (ADR 43).
//
// The Ledger has the last Count of every seed and stores it in ConfigMap addon-usage, where every replica's admission
// reads it (ADR 11). Seeds share the ConfigMap equally. Figures of a seed that does not answer stay, with the time of
// the last answer; those of a deleted Seed are dropped.
//
// A seed whose installations can't be counted is not reported as failing.
//
//rights:master-platform create configmaps -- RBAC can't bind a creation to a name
//rights:master-platform get,patch configmaps names=addon-usage -- the versions that installations on seeds use
//rights:distributor list addoninstallations.kubermatic.k8c.io -- which versions installations use
package usage
