// Package addonset is the AddonSetController of a seed: it puts the add-ons of AddonSets on every
// cluster that they select, in waves that halt by themselves (ADR 62).
//
// Reads, on the seed: copies of AddonSets in the catalogue namespace, as far as the distributor marked
// them (those of type Core are controller coreaddon's); merged AddonCatalogues; Clusters (through
// cluster.Finder); the namespaces of clusters; AddonInstallations. It never calls a user cluster.
//
// Writes: AddonInstallations by server-side apply under its own field manager, with labels set and
// managed-by and annotations digest, moved and sick; status, finalizer and events of the copies.
// Installations that no set made are never changed.
//
// There are two queues. The one by set (setSteps) reads the copy, takes its revision, counts all
// clusters where something changed that concerns them all, decides which may move and writes the
// status. The one by cluster (clusterSteps) finds out how one cluster stands in every set, and
// writes what those sets want that may move it. What they share is in memory, under one mutex:
// for each set a Tally of its clusters (package rollout).
//
//	set.go       a copy, read
//	choice.go    pure: the version and intent of an item on some cluster, each chosen once
//	early.go     pure: what a set has while an upgrade waits that brings the version it is for
//	place.go     pure: one cluster, as a plan sees it
//	sight.go     what plans ask of each installation, taken from it once (ADR 97)
//	plan.go      pure: what one set wants of one cluster, against what is there and what others want
//	intent.go    pure: what an item is in one cluster, of those that share a namespace too
//	standing.go  pure: how the cluster stands in the rollout, from plan and installations
//	revision.go  pure: the hash of all that clusters get by a set
//	unsure.go    copies that can't be gone by, and what they may claim
//	take.go      the set, its catalogues and revision, taken into memory
//	count.go     clusters are counted, all of them or one
//	decide.go    places are granted; removals are guarded
//	write.go     installations are applied, released, orphaned, deleted
//	status.go    status, conditions and events of copies
//	steps.go     the steps of both queues; watches.go, what wakes them; metrics.go
//
// All state is on objects. A process that begins takes revision and startedAt from the copy's
// status, counts every cluster by annotation moved and status of its installations, and grants
// nothing before. A revision is in the status before anything moves by it. A place is held from the
// moment it is granted, through the write, until the installations are Ready for the soak time:
// what the API server answered counts, and not what the cache says so far.
//
// While the API server can't be asked what a write without an answer left, nothing is written to the
// cluster, and how it stands is decided and told. A copy that can't be gone by holds what it may
// want (unsure.go): what others let go under the name of one of its items stays.
//
// A removal is planned by caches, and checked past them: what was removed does not come back as it
// was (ADR 76).
//
// What is not known changes nothing: a copy, a Cluster or an add-on that is missing, a version that
// is unknown while it is constrained, a list that fails.
//
//rights:seed list,watch namespaces -- cluster namespaces, as metadata
//rights:seed get,list,watch,patch,control addonsets.kubermatic.k8c.io -- copies of sets are read, past the cache too, and have a finalizer
//rights:seed patch addonsets/status.kubermatic.k8c.io -- the status of copies
//rights:seed get,list,watch,create,patch,delete,control addoninstallations.kubermatic.k8c.io -- installations of sets
package addonset
