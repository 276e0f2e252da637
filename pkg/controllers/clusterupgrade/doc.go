// Package clusterupgrade makes upgrades of Cluster API's Clusters wait for their add-ons: for those that have a slot
// in the order of a cluster, since without them its nodes don't work.
//
// Reads, on the seed: Clusters (through cluster.Finder), their core installations and those of sets, merged
// AddonCatalogues, copies of AddonSets, the core list (through the controller of core add-ons, since a Core set may
// pin other versions than the list has), and the last written condition. It never calls a user cluster.
//
// Writes: two annotations of Clusters and their pools of machines, and on the cluster's available catalogue condition
// UpgradeHeld; an event after a timeout. Package pkg/fleet/upgrade decides the annotations of a Cluster, from the present
// state: all state is on objects, so that a restart changes nothing. Annotations hold one Cluster each, and do not
// change while this manager is down: a user who must continue removes them (ADR 92).
//
// A reconciliation handles one Cluster of Cluster API, in the order of steps.go; each step is in the file of its
// name. It starts after events of the Cluster, of its installations, of catalogues and of the specs of sets, when a
// stage's time is over, and twice a minute while an upgrade waits: neither the status of a set nor the core list is
// watched. A Cluster that is paused, deleted or another worker's is not written to. If upgrades must not wait,
// existing annotations are removed.
//
//rights:seed get,list,watch addoninstallations.kubermatic.k8c.io if=cluster-api -- installations that upgrades wait for
//rights:seed get addoncatalogues.kubermatic.k8c.io if=cluster-api -- the last condition UpgradeHeld
//rights:seed patch addoncatalogues/status.kubermatic.k8c.io if=cluster-api -- condition UpgradeHeld
//rights:seed patch clusters.cluster.x-k8s.io if=cluster-api -- annotations that delay upgrades are set on Clusters and removed
package clusterupgrade
