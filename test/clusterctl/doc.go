// Package clusterctl tries a release with the program that it is for: clusterctl, built from source, installs what hack/release wrote on an
// API server that has Cluster API's kinds, upgrades it and takes it off again. Beside it the helm program installs the charts of the same
// release on another API server, and both have to come to the same objects, by which the seed's manager serves Clusters of Cluster API.
//
// The managers are not built: what the images hold is not looked at here, and no pod runs. Nobody is asked but this machine: the folder is
// the provider's repository, Cluster API itself comes out of another one that the test writes, and cert-manager, which clusterctl wants to
// find, is its kinds alone. The webhooks' certificates are the managers' own.
package clusterctl
