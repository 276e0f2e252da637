package addoninstallation

import (
	"context"

	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// course is what a reconciliation does. It has the steps of the table that name it, in the table's order.
type course uint8

const (
	// install what is wanted, and keep it.
	install course = 1 << iota
	// hold what is applied, since only the record has the content that is meant: the installation is pinned.
	hold
	// finish a rollback, or another revision that only the record has. The next reconciliation repairs drift.
	finish
	// maintain what is installed, since what is wanted can't be had.
	maintain
	// renew credentials of an installation that is paused, while its Cluster is not.
	renew
	// undo an installation that lives while its Cluster is being deleted.
	undo
	// remove an installation that is being deleted. Done takes the finalizer off.
	remove

	everything = 1<<iota - 1
)

// row is a step with the courses that have it.
type row struct {
	of   course
	name string
	run  func(context.Context, *facts) loop.Outcome
}

// table has all steps. What goes on in which state is said here and in docs/spec/addoninstallation.md, which a test compares.
func (r *Reconciler) table() []row {
	const applied = install | hold | finish | maintain // objects are to be there
	return []row{
		{install | remove, "withhold", r.withhold},                                  // rights on the seed that the platform revoked
		{remove, "leave", r.leave},                                                  // ends it where no call is needed
		{undo | remove, "order", r.removedInTurn},                                   // dependents and later slots are removed first
		{install, "find-cluster", r.findCluster},                                    // the Cluster that it is for
		{install, "complete", r.complete},                                           // what spec leaves to the catalogue; an owner
		{install, "unpaused", r.unpaused},                                           // neither the Cluster nor the installation is paused
		{install, "kkp-addon", r.kkpAddonGone},                                      // KKP's own add-on of that name has to be gone
		{install | renew, "load-record", r.loadRecord},                              // what was applied last, read once per process
		{install, "share", r.withinShare},                                           // what is beyond it is not installed or updated
		{install, "resolve", r.resolve},                                             // the add-on's version that fits
		{install, "granted", r.granted},                                             // the platform's values that a set grants
		{install, "pinned", r.pinned},                                               // turns to hold or finish
		{install, "adopts", r.adopts},                                               // the annotations about adoption can be read
		{install, "values", r.resolveValues},                                        // the layers of values, checked against the form
		{install, "fetch", r.fetch},                                                 // the version's content, from the store
		{everything, "connect", r.connect},                                          // a live connection to the user cluster
		{install, "compare", r.compare},                                             // inputs equal: no render, no write
		{install, "order", r.inTurn},                                                // slots and dependsOn: what comes first is ready
		{install, "required", r.required},                                           // kinds that the version needs the cluster to serve
		{install, "render", r.render},                                               // content and values become objects
		{install, "allowed", r.allowed},                                             // what Custom catalogues may not have
		{install, "take-over", installs((*installer.Pass).FindExtras)},              // helm: what else a release has that is followed
		{install, "access", r.access},                                               // credentials for the hub, which a revision waits for
		{applied&^install | renew, "access", r.maintainAccess},                      // the same, as they are on record
		{install, "intent", r.recordIntent},                                         // on record before the first write
		{install, "surplus-access", r.revokeSurplus},                                // the oldest credentials of many revisions that never worked
		{install, "apply", r.apply},                                                 // stage by stage; after namespaces and CRDs hooks come first
		{finish, "apply", installs((*installer.Pass).GoBack)},                       // the objects on record, stage by stage
		{install | finish, "record", installs((*installer.Pass).RecordApplied)},     // on record with every UID
		{applied, "release", installs((*installer.Pass).WriteRelease)},              // helm: the copy that `helm list` shows; before drift
		{applied &^ finish, "inherit", installs((*installer.Pass).AdoptShared)},     // objects of an installation that is gone, or left them
		{applied &^ finish, "drift", installs((*installer.Pass).RepairDrift)},       // now and then: what is there is what was applied
		{applied &^ finish, "copies", installs((*installer.Pass).CopyPullSecret)},   // copies of the pull Secret follow it; apply makes new ones
		{applied&^finish | renew, "kept", installs((*installer.Pass).KeepSecrets)},  // Secrets with credentials follow them
		{applied &^ maintain, "post-hooks", installs((*installer.Pass).PostHooks)},  // hooks that run once everything is applied
		{applied, "health", installs((*installer.Pass).Assess)},                     // until everything works; atomic upgrades have a deadline
		{applied &^ maintain, "last-hooks", installs((*installer.Pass).LastHooks)},  // hooks that run once everything works, where it is atomic
		{applied &^ maintain, "prune", installs((*installer.Pass).Prune)},           // what the revision no longer has
		{applied &^ maintain, "old-copies", installs((*installer.Pass).DropFormer)}, // of the pull Secret, which the revision no longer needs
		{install | hold, "old-access", r.revokeFormer},                              // credentials that the revision no longer has
		{applied | renew, "access-missing", r.accessMissing},                        // reports credentials that are missing
		{applied | renew, "rest", restUntilSurvey},                                  // until the next comparison or renewal
		{undo | remove, "find-kept", r.findKept},                                    // Secrets with credentials that no record knows
		{undo | remove, "pre-delete", r.preDelete},                                  // hooks that run before anything is removed
		{undo | remove, "remove", installs((*installer.Pass).RemoveObjects)},        // in reverse order, by UID, until nothing is left
		{undo | remove, "post-delete", installs((*installer.Pass).PostDelete)},      // hooks that run after everything is removed
		{undo | remove, "emptied", installs((*installer.Pass).RemoveNamespaces)},    // the namespaces that such hooks ran in
		{undo | remove, "kept", r.dropKept},                                         // Secrets with credentials
		{undo | remove, "last-copies", installs((*installer.Pass).DropPullSecret)},  // copies of the pull Secret that nothing else needs
		{undo | remove, "release", installs((*installer.Pass).RemoveRelease)},       // helm: the release's Secrets
		{undo | remove, "revoke", r.revokeAll},                                      // what the credentials were good for, on the seed
		{undo | remove, "forget", r.forgetRecords},                                  // last, so that a crash begins again
	}
}

// courses are the steps of each course.
func (r *Reconciler) courses() map[course][]loop.Step[facts] {
	made := map[course][]loop.Step[facts]{}
	for _, row := range r.table() {
		for one := install; one <= remove; one <<= 1 {
			if row.of&one != 0 {
				made[one] = append(made[one], loop.Step[facts]{Name: row.name, Run: row.run})
			}
		}
	}
	return made
}

// run the steps of a course.
func (r *Reconciler) run(ctx context.Context, f *facts, one course) loop.Outcome {
	return loop.Run(ctx, r.stepsOf[one], f)
}

// installs is a step that the installer has by itself.
func installs(step func(*installer.Pass, context.Context) *installer.Stop) func(context.Context, *facts) loop.Outcome {
	return func(ctx context.Context, f *facts) loop.Outcome { return outcomeOf(step(&f.pass, ctx)) }
}

// restUntilSurvey ends a reconciliation that has nothing more to do, until the next comparison or renewal. Nothing is compared while
// spec.paused, so an overdue comparison must not cause a reconciliation.
func restUntilSurvey(_ context.Context, f *facts) loop.Outcome {
	if f.installation.Spec.Paused {
		return loop.Done{Recheck: f.nextAccess()}
	}
	return loop.Done{Recheck: backoff.Sooner(f.pass.NextSurvey(), f.nextAccess())}
}
