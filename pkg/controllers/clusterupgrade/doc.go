// Package clusterupgrade makes upgrades of Cluster API's Clusters wait for their add-ons: for those
// that have a slot in the order of a cluster, since without them its nodes don't work.
//
// Reads, on the seed: Clusters (through cluster.Finder), their core installations and those of sets,
// merged AddonCatalogues, copies of AddonSets, the core list (through the controller of core add-ons,
// since a Core set pins what the list says otherwise), and the condition that it wrote last. It never
// calls a user cluster.
//
// Writes: two annotations of Clusters and their pools of machines, and on the cluster's available
// catalogue condition UpgradeHeld; an event where it gave up. What is to be on a Cluster is decided
// by pkg/upgrade, from what is there: all state is on objects, so that a restart changes nothing.
// Annotations hold one Cluster each, and stay what they are while this manager is down: who has to
// go on takes them off (ADR 92).
//
// A pass is over one Cluster of Cluster API, in the order of steps.go; each step is in the file of its
// name. It begins with events of the Cluster, of its installations, of catalogues and of the specs of
// sets, when a stage's time is over, and twice a minute while one waits: neither the status of a set
// nor the core list is watched. A Cluster that is paused, deleted or another worker's is not written
// to. Where upgrades are not to wait, what is on is taken off.
//
//rights:seed get,list,watch addoninstallations.kubermatic.k8c.io if=cluster-api -- what upgrades wait for
//rights:seed get addoncatalogues.kubermatic.k8c.io if=cluster-api -- condition UpgradeHeld as it was written last
//rights:seed patch addoncatalogues/status.kubermatic.k8c.io if=cluster-api -- condition UpgradeHeld
//rights:seed patch clusters.cluster.x-k8s.io if=cluster-api -- what holds upgrades is put on Clusters, and taken off
package clusterupgrade
