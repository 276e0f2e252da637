// Package rights says which rights an add-on's agent may have on the hub (template.access): the floor for every
// version, the platform's list above it, and the names of all objects made for an agent. It is pure.
//
// A client that can read an agent's Secret has its rights, and every admin of the user cluster can. So the
// floor excludes all that no catalogue may give to a tenant, even if the platform lists it: CheckVersion enforces it
// when catalogues are read, and Rules again before a Role is written, since a merged object may not have
// passed that check. The list (Uncovered) is what this platform grants.
//
// A rule applies to each of its verbs on each of its resources in each of its groups, and all pairs have to
// pass. RBAC compares letter by letter, so anything not in the one form of groups, plurals, verbs and
// names is refused: upper case, blanks, wildcards, and the name "", which RBAC uses for requests without a
// name.
//
// Groups. Of groups of Kubernetes itself, which have no dot or end in k8s.io, builtIn has all that is allowed:
// ConfigMaps, events and Leases. Kinds that Kubernetes adds are thus refused until builtIn has them. Groups
// of others are allowed, except those whose kinds, in a cluster namespace, are known to give access to more
// than themselves (denied): the control planes of user clusters run there, with their Secrets. These are kinds
// whose controllers
//
//   - run pods, or apply and change objects, with rights of their own: a pod mounts any Secret of its namespace
//   - are the platform: KKP's, ours, Cluster API's with machines, providers and etcd, clouds
//   - write or read Secrets for the requester, such as certificates under a name of one's choice, or scrapes
//     with credentials out of a Secret
//   - move or cut the network of the control plane
//   - back up, restore and copy its disks
//
// No such list is complete: an operator for a database runs pods too. The platform's admin decides about kinds
// that are not known here: without the admin's list none are granted.
//
// Built-in kinds. An agent writes ConfigMaps and Leases by resourceNames only, each beginning with
// addon-$(installation)- as written in the catalogue. Leases, because with any name an agent could forge
// another's heartbeat, or take the leadership of any program that elects a leader in the namespace. A request
// that creates by POST has no name, so such a rule never allows it: ConfigMaps are created by server-side
// apply, Leases by that or by PUT, for which API servers require create with the name. The rest of a name
// has no "-" and no $(installation), so that its last "-" ends the installation's name: an installation named
// a can't request names of a-b. Events may be written, also those of others: they are text that no program acts on.
//
// Subresources are status, scale and finalizers of custom kinds. Others connect to something, or issue
// credentials. Admission plugin OwnerReferencesPermissionEnforcement, where it runs, requires finalizers of a
// client that creates an object whose owner waits for it (blockOwnerDeletion), as agents do for objects of
// their own kinds. It does not allow writing the owner. The worst result is that the deletion of such an owner
// in the foreground waits for an object of the agent's; without the plugin all clients can cause that.
//
// Signers. Of Kubernetes' own, only the one for clients of the API server: the others sign for servers and nodes.
package rights
