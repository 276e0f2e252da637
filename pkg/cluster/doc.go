// Package cluster knows the user clusters of a seed: which one a target.Ref means, whether it is
// deleted or gone, and the connection to its API server.
//
// Finder finds, lists, watches and annotates the objects that stand for clusters. Finders implements
// it over the kinds that a manager serves (ADR 91): KKPFinder for KKP's Clusters, one a namespace, and
// CAPIFinder for Cluster API's, many a namespace. Each kind is watched from when its CRD is served,
// and what is not served is never gone. The view of CAPIFinder joins a Cluster with its control
// plane's object, for its version, and tells of changes of what is given only. A law names the files
// that may read KKP's kinds (ADR 53), and Cluster API's.
//
// Connections are made outside of reconciles. Get answers at once, with a live Connection or a
// NotConnectedError. A connector per cluster works in the background: it reads the kubeconfig
// Secret past caches, checks it, asks for the version and the served kinds, and wakes subscribers.
// After a transport failure it blocks the connection and probes with back-off until the API server
// answers, so a dead cluster holds no worker. A changed Secret replaces the connection.
//
// The UID of its namespace kube-system identifies a user cluster. Identities records on the seed
// which one a Cluster has (ADR 36). Each connector compares them at each visit, and gives out no
// connection to another user cluster, or to one of another Cluster. Records of Clusters that are
// gone and have no installations are removed (goneidentities.go).
//
// Platform reads other objects of a seed: KKP's kinds for template data, and the kinds that
// providerRef may name. Each is optional, and watched once it is served. Secrets reads the Secrets
// that a Cluster refers to.
//
// PlatformValues is what the platform says of its clusters to all templates, out of a list in a ConfigMap.
//
// Seen gives valuesTemplates objects of Cluster API as they are served, as far as they name them: the
// Cluster, its control plane and its infrastructure, by its references, in its namespace and of listed
// kinds. A kind is watched once an object of it is read; it is held as the text that templates see, of
// which status that goes on changing is no part, and whoever read it is told of the next change (ADR 93).
//
// Kubeconfigs of Cluster API's Clusters are their tenants': they lead to no loopback, link-local or
// metadata address, unless the operator allows it.
//
// User clusters belong to tenants. pkg/remote bounds their answers; discovery.go bounds what is
// stored of discovery. A cluster that misbehaves gets no calls for a while (answer.go). No text
// of an API server's answer gets into an error of this package.
//
//rights:seed get,list,watch clusters.kubermatic.k8c.io if=kkp -- Clusters are found as they come
//rights:seed patch clusters.kubermatic.k8c.io if=kkp -- requests for installations are taken off their Cluster
//rights:seed get,list,watch clusters.cluster.x-k8s.io if=cluster-api -- Clusters of Cluster API are found as they come
//rights:seed patch clusters.cluster.x-k8s.io if=cluster-api -- requests for installations are taken off their Cluster
//rights:seed get,list,watch {controlPlanes} if=cluster-api -- what Clusters of Cluster API refer to: control planes, for their version, and what templates name
//rights:seed list,watch ipamallocations.kubermatic.k8c.io,seeds.kubermatic.k8c.io if=kkp -- what templates see of KKP
//rights:seed list,watch kubermaticconfigurations.kubermatic.k8c.io if=kkp -- what templates see of KKP
//rights:seed list,watch addons.kubermatic.k8c.io if=kkp -- one of KKP's own that an installation takes the place of has to go first
//rights:seed get,list,watch {providerKinds} -- what valuesFrom.providerRef may name
//rights:seed get,list,watch secrets -- kubeconfigs of user clusters, and what Clusters name
//rights:seed list,get configmaps -- which user cluster each Cluster has
//rights:seed list,watch configmaps -- what templates see of the platform
//rights:seed-platform create,update,delete configmaps -- which user cluster each Cluster has, until it is gone
//rights:master-platform list,watch seeds.kubermatic.k8c.io -- seeds are found as they come
package cluster
