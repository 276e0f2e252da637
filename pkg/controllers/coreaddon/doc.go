// Package coreaddon is the CoreAddonController: it creates the core add-ons of every user cluster, and protects them
// from accidental deletion.
//
// Reads, on the seed: Clusters (through cluster.Finder), merged AddonCatalogues, the custom core list (ConfigMap
// custom-core-addons, key addons.yaml, in the platform namespace), AddonInstallations, the namespaces of clusters,
// the metadata of available catalogues, and copies of AddonSets of type Core. It never calls a user cluster.
//
// Writes: AddonInstallations with coreAddon true, their finalizer core-addon-protection, and on the cluster's
// available catalogue status.core and condition AddonsReady. It writes all of them by server-side apply under its own
// field manager: its fields are restored when other clients change them, and values that a cluster admin adds stay.
// Of copies of type Core it writes finalizer, status and events.
//
// The set of a cluster comes from rules.go (over the Cluster's fields) and the custom list (list.go); if both name an
// add-on, the list wins. Rules name add-ons; versions come from Core catalogues: an installation without a version
// gets the newest that fits. It is upgraded together with the cluster's Kubernetes version and never downgraded,
// except from versions that a Core catalogue lists as versions to leave. For a rule, only Core catalogues count.
//
// Missing information removes nothing. If a Cluster field is missing, the add-ons of its rule stay. If the list can't
// be read, the last valid one applies; before the first valid one, the existing installations are the set. If there
// is no list, the add-ons of an earlier list stay. Only a present list or a present field takes an add-on out of the
// set.
//
// Under an AddonSet of type Core (ADR 64) a second queue (setSteps) reads the copy, takes a revision, counts clusters
// and grants moves. stage.go (pure) separates a cluster's move from the writes that preserve its present state,
// guard.go has the removals that wait, staging.go the memory. A paused set delays all moves; pins, repairs and the
// missing add-ons of new clusters are written. Without such a set none of this affects a reconciliation.
//
// Clusters that share a namespace are separate: a reconciliation sees only its own cluster's installations, and the
// memory uses cluster.Key. Outside of KKP, names of installations have the cluster's name before the item's
// (neighbours.go), and no rule counts.
//
// AddonsReady also waits for the installations that upgrades of Kubernetes wait for (gates.go): for add-ons with a
// slot, installations of sets count too, and all must be made for the cluster's version.
//
// One reconciliation handles one cluster, in the order of steps.go; each step is in the file of its name. An
// installation that is deleted while it is in the set keeps its finalizer, and the AddonInstallationController
// reconciles it as before. If it is out of the set, or its Cluster is being deleted or does not exist, the finalizer
// is removed at once, without a call to the user cluster. A namespace that is being deleted is reported, and nothing
// is written to it. Installations that this controller did not create are never changed, even those with a core
// add-on's name.
//
//rights:seed list,watch namespaces -- cluster namespaces, as metadata
//rights:seed get,list,watch configmaps -- the custom core list
//rights:seed list,watch addoncatalogues.kubermatic.k8c.io -- available catalogues, as metadata
//rights:seed get,patch,control addoncatalogues.kubermatic.k8c.io -- the core part of available catalogues
//rights:seed patch addoncatalogues/status.kubermatic.k8c.io -- the core part of available catalogues
//rights:seed get,list,watch,patch,control addonsets.kubermatic.k8c.io -- copies of sets are read, past the cache too, and have a finalizer
//rights:seed patch addonsets/status.kubermatic.k8c.io -- the status of copies
//rights:seed get,list,watch,create,patch,delete,control addoninstallations.kubermatic.k8c.io -- core add-ons
package coreaddon
