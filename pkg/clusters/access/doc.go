// Package access gives agents of add-ons their credentials for the hub, which is the seed's API server: tokens and client certificates,
// with rights in the cluster namespace.
//
// # What it reads
//
// ClusterRoles with label addons.kubermatic.k8c.io/agents list the rights that agents can have: an agent gets no right that they do not
// cover, and none beyond the floor (package rights), even if they list it. The platform sets the address of the seed for agents. The
// objects are checked in a cache, which has only the metadata of Secrets; if nothing changes, a reconciliation makes no call. An object
// that differs in the cache is read past it before it is written, since the cache may be behind.
//
// # What it writes
//
// In the cluster namespace: a ServiceAccount, a Role, a RoleBinding to that account or to the user of a certificate, the agent's outbox,
// which is created empty and whose content is never read, and a Secret that stores the credential. CertificateSigningRequests, and
// approvals for the signers that the platform names. Each has label and annotation of the installation, and the Cluster as its owner; two
// of the three make an object ours. Edits are repaired. An object of another owner with one of the names is not touched. Objects of a
// previous Cluster of the name are deleted and recreated, as is a binding to another role.
//
// # In which order
//
// Rights first, then the Secret, then the credential. A token is bound to the Secret's UID, and a certificate's user has a nonce from it:
// deleting the Secret ends its credentials, and the next one has another user. A token is issued and then stored, and a key is stored
// before its certificate is requested, so that a process may end anywhere. The Secret is written only on top of the version that was
// read: of two managers one is refused, and uses what the other stored. Only stored credentials are given out. Removal begins with the
// binding and ends with the Secret.
//
// A credential that could not be renewed is valid until its end. A denied request, or a certificate that is not what was requested, is
// recorded; it is requested again when annotation reconcile-at changes. Another value of annotation rotate-at ends issued credentials,
// first of all, even if none are given out any more.
//
// # What it never does
//
// It never calls a user cluster, reads no Secret but its own, and accepts no certificate that package certificate did not check. No token
// and no key is in memory between reconciliations, in errors, logs or records: errors have nothing of an API server's answer, and digests
// are of a serial number.
//
//rights:seed get,list,watch,create,update,delete serviceaccounts if=agents -- accounts of agents
//rights:seed create serviceaccounts/token if=agents -- tokens of agents
//rights:seed get,list,watch,create,update,delete roles.rbac.authorization.k8s.io if=agents -- rights of agents
//rights:seed get,list,watch,create,update,delete rolebindings.rbac.authorization.k8s.io if=agents -- rights of agents
//rights:seed list,watch clusterroles.rbac.authorization.k8s.io if=agents -- the rights that the platform allows agents
//rights:seed get,list,watch,create,update,delete secrets if=agents -- credentials of agents, and their outboxes
//rights:seed patch secrets if=agents -- an agent may patch its outbox, and the manager must have a right to grant it
//rights:seed get,create,delete certificatesigningrequests.certificates.k8s.io if=agents -- certificates of agents
//rights:seed update certificatesigningrequests/approval.certificates.k8s.io if=approve -- certificates of agents
//rights:seed approve signers.certificates.k8s.io names={signers} if=approve -- certificates of agents
package access
