// Package ocm has the agent of an add-on that was written for another platform work with credentials of ours: the one of Open Cluster
// Management's own example (module hack/ocm), as a process, which no line of ours knows. The hub is one API server, the user cluster
// another. The agent runs as the pod of its Deployment (package pod), whose volumes follow their Secrets as a kubelet has them follow,
// and never restarts but where the test kills it. The hub is reached through a proxy that sees what each call is answered.
//
// On the hub the agent reads ConfigMaps of the cluster namespace and its own ManagedClusterAddOn. Its Lease and the copies of ConfigMaps
// are in the user cluster, where it has the account of its pod.
package ocm
