// Package rights says what an add-on's agent may have on the hub (template.access): the floor that every
// version is held to, what the platform lists above it, and what everything made for an agent is named. It
// is pure.
//
// Who reads an agent's Secret has its rights, and that is every admin of the user cluster. So the floor is
// what no catalogue may give to a tenant, whatever the platform lists: CheckVersion holds it where
// catalogues are read, and Rules again before a Role is written, since a merged object may have been
// written past that. The list (Uncovered) is what this platform does give.
//
// A rule stands for each of its verbs on each of its resources in each of its groups, and all pairs have to
// pass. RBAC compares letter by letter, so whatever is not in the one form of groups, plurals, verbs and
// names is refused: upper case, blanks, wildcards, and the name "", which RBAC takes for requests without a
// name.
//
// Groups. Of groups of Kubernetes itself, which have no dot or end in k8s.io, builtIn has all that may be:
// ConfigMaps, events and Leases. What Kubernetes adds is thus out until somebody decides otherwise. Groups
// of others are in, but for those whose kinds, in a cluster namespace, are known to hand on more than
// themselves (denied): the control planes of user clusters run there, with their Secrets. These are kinds
// whose controllers
//
//   - run pods, or apply and change objects, with rights of their own: a pod mounts any Secret beside it
//   - are the platform: KKP's, ours, Cluster API's with machines, providers and etcd, clouds
//   - write or read Secrets for who asks, such as certificates under a name of one's choice, or scrapes with
//     credentials out of a Secret
//   - move or cut the network of the control plane
//   - back up, restore and copy its disks
//
// No such list is whole: an operator for a database runs pods too. Kinds that are not known here are for the
// platform's admin to judge, without whose list there are none.
//
// Built-in kinds. An agent writes ConfigMaps and Leases by resourceNames only, each beginning with
// addon-$(installation)- as it stands in the catalogue. Leases, because with any name an agent could forge
// another's sign of life, or hold the leadership of whatever elects a leader in the namespace. A request
// that creates by POST has no name, so such a rule never allows it: ConfigMaps are created by server-side
// apply, Leases by that or by PUT, for which API servers ask for create with the name. What
// follows has no "-" and no $(installation), so that the last "-" of a name ends the installation's: one named
// a can't ask for names of a-b. Events may be written, also those of others: they are words, and nothing acts on them.
//
// Subresources are status, scale and finalizers of custom kinds. Others connect to something, or mint
// something. Finalizers is asked for by admission plugin OwnerReferencesPermissionEnforcement, where it runs,
// of who makes an object whose owner waits for it (blockOwnerDeletion), as agents do for objects of their own
// kinds. It lets nobody write the owner. The worst is a deletion of such an owner in the foreground that
// waits for an object of the agent's; without the plugin everybody can do that.
//
// Signers. Of Kubernetes' own, only that for clients of the API server: the others make servers and nodes.
package rights
