// Package fleet directs the rollouts of AddonSets over all seeds, and writes the status of each set on the master.
//
// Reconciliations of the distributor record their findings about sets in a ledger, and workers of seeds the status of
// their copies (package copies). From these, controller distributor-sets derives, for one set,
//
//	gates     how many groups each seed may open (pkg/fleet/rollout), as an order to the seed's worker
//	deletion  the order to delete the copies, once the set is being deleted and that is confirmed
//	status    the sum of the seeds' statuses, limited to 64 KiB, at most every two seconds
//
// Reads and writes, on the master: AddonSets; of these the finalizer cleanup-addon-set and the whole status, with
// conditions Ready and DeletionBlocked. All other fields belong to users. It calls no seed.
//
// After a start, the state of seeds is unknown. Until all were heard, or awaited long enough, no gate changes; a
// finalizer is removed once every listed seed has reported that its copy is deleted.
//
//rights:master list,watch addonsets.kubermatic.k8c.io -- sets; one in the wrong namespace gets a warning
//rights:master-platform patch addonsets.kubermatic.k8c.io -- the finalizer of sets
//rights:master patch addonsets/status.kubermatic.k8c.io -- the status of sets
package fleet
