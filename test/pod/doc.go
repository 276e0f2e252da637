// Package pod runs the container of a pod as a process on this machine, which has what a container on a node has and no more: the
// user of its security context without a capability and without a way to one, a root folder of its own that nobody writes to, with the
// program, the volumes and what a container runtime adds, the account's token, the variables that lead to the API server, and a filter of
// system calls like RuntimeDefault of container runtimes. Network and process ids are those of the machine, so that containers of one
// platform listen on addresses of their own: their flags come after those of the pod.
//
// A Node is a kubelet's part (node.go): it lays volumes out, and has those of Secrets follow them (volumes.go). What the container
// is started with is taken from the pod (container.go). The process begins as package enter, which moves into the root, gives everything up
// and becomes the program: one process, with one id, that can be measured, stopped and killed.
//
// What would change what runs, and is not carried out here, is refused: commands, init containers, users of a container's own, other
// kinds of volumes and variables. Probes, lifecycle hooks, resources but the limit of memory as a variable, and fsGroup are passed over.
//
// It takes user namespaces. Where a machine refuses them to this user, an open Node runs containers as plain processes with the same
// arguments, volumes and account; Refused says why.
package pod
