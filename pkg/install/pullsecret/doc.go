// Package pullsecret knows which namespaces of user clusters have a copy of the platform's pull Secret, and for which
// installations.
//
// The original is in the platform's namespace on the seed, with label use: pull; clients that can write there may
// give it away. A copy has one owner for each user cluster, which is no installation: copies are in no inventory and
// in no digest, so that a changed Secret renders and applies nothing. Records stores, in a ConfigMap for each Cluster
// next to its identity, place, name and UID of each copy, and the namespaces of each installation. Of the content it
// has only a keyed digest.
//
// A user cluster's own marks on a copy do not count, since its users can write any labels and field managers: an
// object is a copy if its UID is recorded or, if a process ended between writing it and recording that, if it has the
// nonce that was recorded before.
//
// Package installer makes the calls to user clusters.
//
//rights:seed list,get configmaps -- records of the copies of the pull Secret in user clusters
//rights:seed-platform create,update,delete configmaps -- records of the copies of the pull Secret in user clusters
package pullsecret
