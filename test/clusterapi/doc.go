// Package clusterapi runs Cluster API in tests: its own core manager, built from its source, beside an API server of a fleet, and a
// stand-in for the providers of control planes and infrastructure, by which API servers of the same fleet become user clusters.
//
//	management, user := f.Cluster("management"), f.Cluster("user") // the first with Controllers
//	clusterapi.ForTest(t, f, management, clusterapi.Options{})
//	player := clusterapi.Play(t, management, clusterapi.Provider{Servers: []*fleet.Cluster{user}})
//	... clusterapi.Class{Namespace: "team", Versions: ...}.Create(ctx, c)
//	... c.Create(ctx, clusterapi.Cluster{Namespace: "team", Name: "one", Version: "v1.36.3", Deployments: []string{"a"}}.Object())
//
// Follow has what became of a Cluster and of what its upgrade waits for, in the order in which the API server stored it.
//
// What only reads Clusters needs no manager: InstallCRDs has the kinds alone, InstallOlderCRDs those of a Cluster API before v1beta2,
// and tests write spec and status themselves.
//
// # What is real
//
// Conversion, admission, ClusterClasses with their upgrades, MachineDeployments and MachinePools, what Clusters say in status, deletion,
// ClusterResourceSets. Feature gates are ClusterTopology, and RuntimeSDK unless an option says otherwise.
//
// # What is played
//
// Upstream's own test providers are no module to be had. FleetControlPlane, FleetCluster and the kinds of machines and bootstrap configs
// are made by Cluster API's contract v1beta2. Of a control plane the Player writes Secret `<cluster>-kubeconfig`, the endpoint,
// conditions and versions; a new spec.version has the API server started as that release, with both versions in status meanwhile. There
// are no machines: pools have no replicas, and the version of their template tells how far an upgrade is.
//
// The manager is there after 2 to 6 s, CRDs included, and takes about 80 MiB. Deleting a Cluster takes some seconds, since Cluster API
// comes back every five to see what is left; its Secret goes with Kubernetes' garbage, which learns of new kinds twice a minute.
package clusterapi
