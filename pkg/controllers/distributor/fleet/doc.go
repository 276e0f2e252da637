// Package fleet directs the rollouts of AddonSets over all seeds, and writes the status of each set on
// the master.
//
// Passes of the distributor record in a ledger what they found out about sets, and workers of seeds
// what their copies say (package copies). From that controller distributor-sets makes, for one set,
//
//	gates     how many groups each seed may open (pkg/rollout), as an order to the seed's worker
//	deletion  the order to delete the copies, once the set is being deleted and that is confirmed
//	status    the sum of what the seeds say, cut to 64 KiB, at most every two seconds
//
// Reads and writes, on the master: AddonSets; of these the finalizer cleanup-addon-set, conditions
// Ready and DeletionBlocked and all else of status. All other fields are people's. It calls no seed.
//
// Nothing is known of seeds after a start. Until all have been heard, or were waited for, no gate
// changes; a finalizer goes once every listed seed has told that its copy is gone.
//
//rights:master list,watch addonsets.kubermatic.k8c.io -- sets, also in the wrong namespace, where they are told so
//rights:master-platform patch addonsets.kubermatic.k8c.io -- the finalizer of sets
//rights:master patch addonsets/status.kubermatic.k8c.io -- the status of sets
package fleet
