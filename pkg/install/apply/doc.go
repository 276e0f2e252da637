// Package apply writes wanted objects to a user cluster, for both methods. ADR 48 says why it uses no
// library for that.
//
// Use. Prepare makes rendered objects fit for a cluster; it is pure. A Rollout writes those that
// differ from the last applied ones, in the stages of package calls. Advance goes as far as
// possible without waiting; call it again until Progress.Complete. Repair restores drifted objects.
// An Obstacle stops a rollout, and is read with one call until it is removed. Namespaces saves reads
// of the same namespace. CreateHook, ReadHook and DeleteHook are for the objects of hooks; WithoutPod
// says why a Job of a hook has no Pod.
//
// Writing. An object that the inventory lacks is created only if none has its name (ADR 25). An
// existing one is read, and package ownership decides about its owner. All writes are server-side apply
// with one field manager for each installation, without force, except for repairs of recorded
// fields and for replicas that the add-on changed (ADR 39). After a refusal, managed fields move to
// the version that is written (versions.go), and fields that the API server refuses together with
// the wanted ones are removed (surplus.go, ADR 105). Installations of one add-on share
// cluster-scoped objects (share.go, ADR 40).
//
// Checks before writing (look.go, ADR 110). With LookFirst nothing is written until all kinds are served
// or defined by the revision, and all new names are free, or are of objects that a write would make ours.
//
// Rehearse (rehearse.go) makes the same writes as dry runs, which the client of the target asks for, and says what the API server
// would refuse.
//
// Waits. A definition that is not established is read until it is; after a minute the note says so,
// with the API server's reason. A call that fails while a webhook's backend is down is an error;
// the next Advance continues there.
//
// It deletes nothing, except hooks, and objects whose manifest says update: recreate. It knows
// client-go and the reasons of conditions, but none of our controllers. It never sleeps, and leaves
// no goroutine.
package apply
