// Package addonset says which AddonSets are right and which of two comes first.
//
// Validate finds what no rule of the CRD can: ranges and selectors that can't be read, values that
// are not taken (no form is asked), templates that don't parse, names that no object can have,
// dependsOn that leads nowhere or in a circle, overrides of items that don't exist, and a spec that is
// too large. The webhook refuses by it, and the distributor copies nothing that it refuses. A source
// that moves by itself is no matter of the set: it is Blocked in the clusters that would get it.
//
// Compare orders sets that want the same: a name in a cluster, or the core add-ons. Holder says which of them
// has a name, also while an upgrade of the cluster's Kubernetes is pending.
//
// No error holds anything of values.
package addonset
