// Package addonset validates AddonSets and decides which of two comes first.
//
// Validate finds problems that no rule of the CRD can: ranges and selectors that can't be read, values that are not
// accepted (forms are not checked), templates that don't parse, names that no object can have, dependsOn with unknown
// items or cycles, overrides of items that don't exist, and a spec that is too large. The webhook refuses such sets,
// and the distributor does not copy them. A source without fixed content is no problem of the set: its items are
// Blocked in the clusters that would get them.
//
// Compare orders sets that want the same: a name in a cluster, or the core add-ons. Holder decides which of them has
// a name, also while an upgrade of the cluster's Kubernetes is pending.
//
// ReadDeviations reads, within limits, what the owner of a Cluster leaves out of sets, or pins.
//
// No error contains any values.
package addonset
