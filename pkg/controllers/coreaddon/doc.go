// Package coreaddon is the CoreAddonController: it makes the core add-ons of every user cluster,
// and keeps them from being deleted by accident.
//
// Reads, on the seed: Clusters (through cluster.Finder), merged AddonCatalogues, the custom core
// list (ConfigMap custom-core-addons, key addons.yaml, in the platform namespace),
// AddonInstallations, the namespaces of clusters, the metadata of available catalogues, and copies
// of AddonSets of type Core. It never calls a user cluster.
//
// Writes: AddonInstallations with coreAddon true, their finalizer core-addon-protection, and on the
// cluster's available catalogue status.core and condition AddonsReady. All of it by server-side
// apply under its own field manager: its fields are restored when others change them, and values
// that a cluster admin adds stay. Of copies of type Core: finalizer, status and events.
//
// The set of a cluster is rules.go (over the Cluster's fields) and the custom list (list.go); where
// both name an add-on, the list wins. Rules name add-ons; versions come from Core catalogues: an
// installation without a version gets the newest that fits, in one step with the cluster's
// Kubernetes version and never down, but for versions that a Core catalogue says to leave. For a
// rule only a Core catalogue counts.
//
// What is not known removes nothing. Where a Cluster field is missing, the add-ons of its rule
// stay. Where the list can't be read, the last good one counts; before there was one, the existing
// installations are the set. Where there is no list, what an earlier list brought stays. Only a
// present list or a present field takes an add-on out of the set.
//
// Under an AddonSet of type Core (ADR 64) a second queue (setSteps) reads the copy, takes a
// revision, counts clusters and grants moves; stage.go (pure) says of a cluster what is its move
// and what keeps it as it is, guard.go which removals wait, staging.go what is remembered. A paused
// set holds all moves; pins, repairs and what new clusters lack are written. Without such a set
// none of that is in a pass's way.
//
// Clusters that share a namespace are apart: a pass sees the installations of its own, and what is kept
// goes by cluster.Key. Outside of KKP their names have the cluster's before the item's (neighbours.go),
// and no rule counts.
//
// AddonsReady also waits for what upgrades of Kubernetes wait for (gates.go): with a slot, what sets made
// counts too, and being made for the cluster's version.
//
// One pass reconciles one cluster, in the order of steps.go; each step is in the file of
// its name. An installation that is deleted while it is in the set keeps its finalizer, and the
// AddonInstallationController reconciles it as before. Out of the set, or with the Cluster deleted
// or gone, the finalizer is removed at once, without a call to the user cluster. A namespace that
// is being deleted is reported, and nothing is written to it. Installations that this controller
// did not make are never changed, also those with a core add-on's name.
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
