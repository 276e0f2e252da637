// Package pullsecret knows which namespaces of user clusters have a copy of the platform's pull
// Secret, and which installations they have it for.
//
// The original is in the platform's namespace on the seed, with label use: pull; who may write
// there may give it away. A copy has one owner for each user cluster, which is no installation:
// copies are in no inventory and in no digest, so that a Secret that changes renders and applies
// nothing. Records has, in a ConfigMap for each Cluster beside its identity, place, name and UID of
// each copy, and the namespaces of each installation. It has nothing of the content but a keyed
// digest.
//
// What a user cluster says of a copy does not count, since its users write labels and field
// managers as they like: an object is a copy if its UID is on record or, where a process ended
// between writing it and recording that, if it has the nonce that was recorded before.
//
// The calls to user clusters are made by package installer.
//
//rights:seed list,get configmaps -- which namespaces of user clusters have a copy of the pull Secret
//rights:seed-platform create,update,delete configmaps -- which namespaces of user clusters have a copy of the pull Secret
package pullsecret
