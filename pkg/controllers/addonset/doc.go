// Package addonset is the AddonSetController of a seed: it installs the add-ons of AddonSets on every cluster that
// they select, in waves that halt automatically (ADR 62).
//
// Reads, on the seed: copies of AddonSets in the catalogue namespace that the distributor marked (those of type Core
// are controller coreaddon's); merged AddonCatalogues; Clusters (through cluster.Finder); the namespaces of clusters;
// AddonInstallations. It never calls a user cluster.
//
// Writes: AddonInstallations by server-side apply under its own field manager, with labels set and managed-by and
// annotations digest, moved and sick; status, finalizer and events of the copies. Installations that no set created
// are never changed.
//
// There are two queues. The one by set (setSteps) reads the copy, takes its revision, counts all clusters after a
// change that affects all of them, decides which may move and writes the status. The one by cluster (clusterSteps)
// determines the state of one cluster in every set, and makes the writes of those sets that may move it. They share
// memory, under one mutex: for each set a Tally of its clusters (package rollout).
//
//	set.go       a copy, read
//	choice.go    pure: the version and intent of an item on some cluster, each chosen once
//	early.go     pure: a set's items during an upgrade to the Kubernetes version that the set is for
//	deviation.go pure: what one cluster leaves out, or pins
//	place.go     pure: one cluster, as a plan sees it
//	observation.go     the fields that plans read of each installation, extracted once (ADR 97)
//	plan.go      pure: the changes that one set needs in one cluster, given the claims of other sets
//	intent.go    pure: an item's installation in one cluster, also among clusters that share a namespace
//	clusterstatus.go  pure: the state of the cluster in the rollout, from plan and installations
//	revision.go  pure: the hash of all that clusters get by a set
//	unknown.go    copies that can't be used, and their possible claims
//	take.go      the set, its catalogues and revision, read into memory
//	count.go     clusters are counted, all of them or one
//	decide.go    places are granted; removals are guarded
//	write.go     installations are applied, released, orphaned, deleted
//	status.go    status, conditions and events of copies
//	preview.go   what a set would do that is not written yet, for the query endpoint
//	steps.go     the steps of both queues; watches.go, the events that start them; metrics.go
//
// All state is on objects. When a process starts, it reads revision and startedAt from the copy's status, counts
// every cluster by annotation moved and status of its installations, and grants nothing before. A revision is in the
// status before anything moves to it. A place is occupied from its grant, through the write, until the installations
// are Ready for the soak time: the API server's answers count, and not the older state of the cache.
//
// While the API server can't be asked about a write without an answer, nothing is written to the cluster, but its
// state is decided and reported. The possible claims of a copy that can't be used are respected (unknown.go): an
// installation that another set drops stays if the copy may have an item of that name.
//
// A removal is planned by caches, and checked past them: a removal can't be reversed completely (ADR 76).
//
// Missing information changes nothing: a copy, a Cluster or an add-on that is missing, a version that is unknown
// while it is constrained, a list that fails.
//
//rights:seed list,watch namespaces -- cluster namespaces, as metadata
//rights:seed get,list,watch,patch,control addonsets.kubermatic.k8c.io -- copies of sets are read, past the cache too, and have a finalizer
//rights:seed patch addonsets/status.kubermatic.k8c.io -- the status of copies
//rights:seed get,list,watch,create,patch,delete,control addoninstallations.kubermatic.k8c.io -- installations of sets
package addonset
