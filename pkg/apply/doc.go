// Package apply puts what is wanted into a user cluster. Both methods, go-template and helm, end in
// it.
//
// Use. Prepare makes rendered objects fit for a cluster; it is pure. A Rollout writes those that
// differ from what was applied last, in stages (package calls has their order): namespaces and
// CRDs, which are waited for; classes, identities and rights; the rest; webhooks and APIServices.
// Advance goes as far as it can without waiting, and is called again until Progress.Complete.
// Repair puts back what drifted. An Obstacle is what keeps a rollout from going on; it is read with
// one call until it is gone. Namespaces saves rollouts that begin together a call each for the same
// namespace. MakeHook, ReadHook and DropHook are for the objects of hooks.
//
// Writing. An object that the inventory does not have is created only if there is none of its name
// (ADR 25). One that exists is read, and package ownership says whose it is. All writes
// are server-side apply with one field manager for each installation, without force; force is for
// repairing fields that are recorded as ours, and for replicas that the add-on has changed (ADR
// 39). Objects without a namespace are shared between the installations of one add-on, and get
// another owner without being deleted (share.go, ADR 40).
//
// Waits. A definition that is not established is read again for as long as it takes; after a minute
// the note says so with the API server's reason. Webhook configurations come last. A call that
// fails while their backend is down is an error, and the next Advance continues where it stopped.
//
// It deletes nothing, but for an object whose manifest says update: recreate, and for hooks. It
// knows client-go and the reasons of the API's conditions, and nothing of our controllers; its
// messages name what a user can set. It sleeps nowhere, and leaves no goroutine when a call
// returns. Why it is ours and no library's: ADR 48.
package apply
