// Package cluster knows the user clusters of a seed: which one a target.Ref means, whether it is being deleted or
// gone, and the connection to its API server.
//
// Finder finds, lists, watches and annotates the objects that represent clusters. Finders implements it for the kinds
// that a manager serves (ADR 91): KKPFinder for KKP's Clusters, one per namespace, and CAPIFinder for Cluster API's,
// many per namespace. It watches each kind once its CRD is served. A Cluster whose kind is not served is never gone.
// CAPIFinder joins a Cluster with the object of its control plane, for its version, and reports only changes of the
// resulting description. An architecture rule lists the files that may read the kinds of KKP (ADR 53) and of Cluster
// API.
//
// Connections connects outside of reconciliations. Get answers at once, with a live Connection or a
// NotConnectedError. One connector per cluster works in the background: it reads the kubeconfig Secret past caches,
// checks it, requests the version and the served kinds, and wakes subscribers. After a transport failure it blocks
// the connection and probes with back-off until the API server answers, so a dead cluster holds no worker. A changed
// Secret replaces the connection.
//
// The UID of its namespace kube-system identifies a user cluster. Identities records on the seed which one a Cluster
// has (ADR 36). Each connector compares them at each visit. It returns no connection to a different user cluster, or
// to the one of another Cluster. Records of Clusters that are gone and have no installations are removed
// (goneidentities.go).
//
// Platform reads other objects of a seed: KKP's kinds for template data, and the kinds that providerRef and objectRef may name.
// Each is optional, and is watched once it is served. Secrets reads the Secrets that a Cluster refers to.
//
// PlatformValues are the platform's values about its clusters for all templates, from a list in a ConfigMap.
//
// Seen gives valuesTemplates the objects of Cluster API that they name, in the served version: the Cluster, its
// control plane and its infrastructure, by its references, in its namespace and of listed kinds. A kind is watched
// once an object of it is read. The cache holds the text that templates see, without status fields that change
// continuously. Each reader is notified of the next change (ADR 93).
//
// Tenants write the kubeconfigs of Cluster API's Clusters, so these may not lead to loopback, link-local or metadata
// addresses, unless the operator allows it.
//
// User clusters belong to tenants. pkg/clusters/remote limits their answers; discovery.go limits the stored part of discovery.
// A cluster that misbehaves gets no calls for a while (answer.go). No error of this package has text from an API
// server's answer.
//
//rights:seed get,list,watch clusters.kubermatic.k8c.io if=kkp -- Clusters are watched
//rights:seed patch clusters.kubermatic.k8c.io if=kkp -- requests for installations are removed from their Cluster
//rights:seed get,list,watch clusters.cluster.x-k8s.io if=cluster-api -- Clusters of Cluster API are watched
//rights:seed patch clusters.cluster.x-k8s.io if=cluster-api -- requests for installations are removed from their Cluster
//rights:seed get,list,watch {controlPlanes} if=cluster-api -- objects that Clusters of Cluster API refer to: control planes, for their version, and objects for templates
//rights:seed list,watch ipamallocations.kubermatic.k8c.io,seeds.kubermatic.k8c.io if=kkp -- KKP's data for templates
//rights:seed list,watch kubermaticconfigurations.kubermatic.k8c.io if=kkp -- KKP's data for templates
//rights:seed list,watch addons.kubermatic.k8c.io if=kkp -- an Addon of KKP that an installation replaces has to be deleted first
//rights:seed get,list,watch {providerKinds} -- objects that providerRef and objectRef of valuesFrom may name
//rights:seed get,list,watch secrets -- kubeconfigs of user clusters, and Secrets that Clusters name
//rights:seed list,get configmaps -- the identity of each Cluster's user cluster
//rights:seed list,watch configmaps -- the platform's values for templates
//rights:seed-platform create,update,delete configmaps -- the identity of each Cluster's user cluster, until it is deleted
//rights:master-platform list,watch seeds.kubermatic.k8c.io -- Seeds are watched
package cluster
