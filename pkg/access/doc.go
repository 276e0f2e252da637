// Package access gives agents of add-ons their credentials for the hub, which is the seed's API server: tokens and client certificates,
// with rights in the cluster namespace.
//
// # What it reads
//
// ClusterRoles with label addons.kubermatic.k8c.io/agents list what agents may be given: nothing is given that they do not cover, nor
// what is beyond the floor (package rights), whatever they say. Where agents reach the seed is the platform's to say. What was made is
// looked at in a cache, of Secrets their metadata; at rest a pass makes no call. What the cache shows otherwise than it is to be is read
// past it before it is written: the cache may be behind.
//
// # What it writes
//
// In the cluster namespace: a ServiceAccount, a Role, a RoleBinding to that account or to the user of a certificate, the agent's outbox,
// which is made empty and never looked into, and a Secret that keeps the credential. CertificateSigningRequests, and approvals for the
// signers that the platform names. Each has label and annotation of the installation, and the Cluster as its owner; two of the three make
// an object ours, edits are put back, and what has one of the names and is not ours is left alone. What a former Cluster of the name had
// is deleted and made again, as is a binding to another role.
//
// # In which order
//
// Rights first, then the Secret, then the credential. A token is bound to the Secret's UID, and a certificate's user has a nonce of it: a
// Secret that is deleted ends what was issued, and the next one makes another user. A token is issued and then stored, and a key is stored
// before its certificate is asked for, so that a process may end anywhere. The Secret is written on top of what was read only: of two
// managers one is refused, and takes what the other stored. Nothing but what is stored is ever handed out. Removal begins with the
// binding and ends with the Secret.
//
// A credential that could not be renewed counts until its end. What was denied, or was not what was asked for, is on record and is asked
// for again when annotation reconcile-at changes. Another value of annotation rotate-at ends what was issued, first of all, also where
// nothing is given out any more.
//
// # What it never does
//
// It never calls a user cluster, reads no Secret but its own, and believes no certificate that package certificate did not check. No
// token and no key is in memory between passes, in errors, logs or records: errors have nothing of what an API server answered, and
// digests are of a serial number.
//
//rights:seed get,list,watch,create,update,delete serviceaccounts if=agents -- accounts of agents
//rights:seed create serviceaccounts/token if=agents -- tokens of agents
//rights:seed get,list,watch,create,update,delete roles.rbac.authorization.k8s.io if=agents -- rights of agents
//rights:seed get,list,watch,create,update,delete rolebindings.rbac.authorization.k8s.io if=agents -- rights of agents
//rights:seed list,watch clusterroles.rbac.authorization.k8s.io if=agents -- what the platform lists for agents
//rights:seed get,list,watch,create,update,delete secrets if=agents -- credentials of agents, and their outboxes
//rights:seed patch secrets if=agents -- an agent may patch its outbox, and who gives a right has to have it
//rights:seed get,create,delete certificatesigningrequests.certificates.k8s.io if=agents -- certificates of agents
//rights:seed update certificatesigningrequests/approval.certificates.k8s.io if=approve -- certificates of agents
//rights:seed approve signers.certificates.k8s.io names={signers} if=approve -- certificates of agents
package access
