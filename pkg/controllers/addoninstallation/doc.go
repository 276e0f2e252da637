// Package addoninstallation makes user clusters have what AddonInstallations ask for, and owns it until it is removed.
//
// # Reads and writes
//
// It reads AddonInstallations, the merged catalogue, the Cluster and marked Secrets and ConfigMaps on the seed. It writes
// the user cluster (the add-on's objects, and the copy of a Helm release), the installation's status, finalizer and events,
// and release records. It never decides what should be installed, and never takes "not found" for a wish to
// remove something. A pass waits for its own calls, and two seconds at most for a rendering; for nothing else.
//
// # A pass
//
// Reconcile runs the steps listed in steps.go; each reads facts, does one thing and either goes on
// or ends the pass with an outcome. In order they find the Cluster, see that KKP's own Addon is
// gone, read the record, resolve the version and its values, fetch its content, connect, compare
// with what is installed, wait for the kinds that the version requires, render, see that the add-on
// may have these objects, find what a release that is adopted has besides, record the intent,
// apply, record what was applied, copy the Helm release, take over what is shared and has no owner
// any more, repair drift, run the hooks that come last, assess health, prune, and rest. Everything
// that takes long happens elsewhere and wakes the installation when it is done: the store fetches,
// the Keeper renders, the connections connect, the user cluster establishes CRDs.
//
// A pass begins with the Cluster (find.go), for a living installation as for one that is removed.
// Its name and UID go into the status with the first status that is written, and in any case into
// status or records before the first remote write; those of core add-ons into the status first. A
// removal that finds no Cluster takes the finalizer off an installation that never had one, or
// whose Clusters are gone: two reads past caches, half a minute apart, did not find them.
//
// While KKP has an Addon of the add-on's name in the cluster, a living installation does nothing at all: KKP would undo it
// (adopt.go). A Helm release in the user cluster that is not this installation's is refused before the first write; with
// annotation adopt it is adopted. What it says of itself counts only as far as the user cluster's objects agree.
//
// # What is rendered
//
// Template data comes first, since a valuesTemplate is rendered from it: the Cluster, what Platform
// knows of KKP's other kinds, variables by flag and, for versions of Core catalogues that ask, the
// Secrets that the Cluster names (platform.go). Then the layers of values, which package resolution
// lays together (values.go). A piece that is missing ends the pass there. A change wakes the
// installations that read what changed, and no others.
//
// Rendering itself is the Keeper's: it renders in a process of its own, keeps what came out by the digest of the inputs,
// failures too, and answers after two seconds at the latest; a rendering that takes longer wakes the installation
// (render.go). What took a renderer with it is put off for minutes. A new value of annotation reconcile-at renders once more
// to compare: where the objects differ, an event names them, and those that were rendered first stay (rerender.go).
//
// What a chart sees besides the inputs (sight.go) is the Helm release's revision and what function lookup finds (lookup.go). Without
// a request, what chance alone makes of a rendering stays as it is on record (unasked.go).
//
// What add-ons may write is decided with their catalogue, save for the Namespaces of Kubernetes itself and what the seed keeps from
// Custom catalogues (allowed.go). What is applied already is never refused.
//
// An obstacle that one call can read is read in passes of its own, which read nothing of the seed past caches and write nothing
// (await.go). Revisions of the Helm release that were made by hand are found with the check for drift, before a new revision and
// before a removal (byhand.go). What is new is announced once it is in the status (tell.go), and all are counted (census.go).
//
// # What is done
//
// One function decides, three times in a pass at most: before anything is rendered, by the inputs; once it is rendered, by the
// objects; and where what is wanted can't be had (revision.Decide, decide.go). The steps go by its decision:
//
//	Keep     nothing is rendered or written; drift is repaired
//	Once     the same; drift is shown only
//	GivenUp  the same, and Ready is False: what is wanted failed before
//	CarryOn  the intent on record is applied further, from memory or from the record
//	Begin    what is wanted is rendered, recorded as an intent and applied
//	GoBack   a rollback on record is applied further
//	GiveWay  a rollback is recorded, since the intent was not applied in time
//	Wait     nothing: what is wanted can't be had, and nothing is there to be kept
//
// Inputs covers what the objects depend on, but for chance, what lookup finds, and the revision's
// number (sight.go); ObjectsDigest covers the rendered objects. Where the record has the same
// inputs nothing is rendered, and where it has the same objects nothing is written to the user
// cluster.
//
// # The record
//
// Before the first write to a user cluster the intent is recorded on the seed: what will be applied, and what the
// revision before had. The record turns Applied, with every object's UID, once the last stage is through. A process that
// dies in between finds the intent, and applying it again writes nothing that is there already. Drift repair,
// rollback and removal work from the record alone.
//
// # Atomic upgrades
//
// An atomic revision that is not applied and healthy in time is rolled back to the one that was healthy last: a new revision with that
// one's objects from its record (rollback.go, ADR 22). What failed is not tried again until the inputs or annotation reconcile-at
// change; until then the version that is back is reconciled like any other, and Ready is False, RolledBack.
//
// # Hooks
//
// Hooks of charts run at three places of a pass, and a pass never waits for one: behind the foundation of a rollout, as a
// gate that keeps the rest back; after the revision is on record as applied, before health or, for atomic versions, after it;
// and around a removal. What they did is on record by itself (hooks.go, deletehooks.go, hooks.Runner). A failed one is
// tried again after a growing pause that the record knows too, so that a restart does not shorten it.
//
// # When an edit can't be followed
//
// A version that left the catalogue, values that are wrong, a source that can't be reached: the pass ends with a
// condition that says so, and what is installed is maintained all the same, and a rollback goes on (maintain.go).
//
// # Removal
//
// An installation that is being deleted takes the removal steps of steps.go instead. The user cluster is not called where the Cluster is
// deleted or gone, nothing was applied, or the objects are to stay (deletionPolicy Orphan); a Cluster that can't be
// found, and is not known to be gone, keeps the finalizer. The finalizer is taken off once the records are forgotten.
//
// Core add-ons are made by the core add-on controller. One that is deleted while that controller's finalizer protects
// it is not removed: it is reconciled as before, and condition DeletionBlocked says why it stays (core.go).
//
// # Turns
//
// Installations wait in a queue that is fair between clusters, and a pass ends when it has taken too long (package fairqueue). Steps
// get the context that ends then. What the seed keeps is read and written in the context outside of it, so that what was done is
// saved; the installation then says that its cluster did not answer in time (overdue.go).
//
// # Between passes
//
// memory.go has what an installation's passes keep, caches.go what installations share. All of it can be lost: a restart
// reads the record again. Failures in a row are counted for backoff.go. Records are kept light: a step that needs objects
// or a manifest reads the record. The installations of a cluster share one view of it: lists for drift, workloads and
// Helm's Secrets, the names of Helm releases, and namespaces.
//
// Conditions owned: Ready, Compatible, ValuesResolved, Fetched, Rendered, Applied, Healthy, Drifted, DeletionBlocked.
package addoninstallation
