package addoninstallation

import (
	"context"

	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/install/installer"
)

// course is the kind of a reconciliation. It has the steps of the table that name it, in the table's order.
type course uint16

const (
	// install the wanted revision, and maintain it.
	install course = 1 << iota
	// hold the applied revision, since only the record has the requested content: the installation is pinned.
	hold
	// finish a rollback, or another revision that only the record has. The next reconciliation repairs drift.
	finish
	// maintain the installed revision, since the wanted one is unavailable.
	maintain
	// renew credentials of an installation that is paused, while its Cluster is not.
	renew
	// foresee what install would render, for a preview. No step of it writes anything that is kept.
	foresee
	// undo an installation that is not being deleted while its Cluster is.
	undo
	// remove an installation that is being deleted. Done takes the finalizer off.
	remove

	everything = 1<<iota - 1
)

// row is a step with the courses that have it.
type row struct {
	of   course
	name string
	run  func(context.Context, *facts) *loop.Outcome
}

// table has all steps. It and docs/spec/addoninstallation.md, which a test compares, say which steps run in which
// state.
func (r *Reconciler) table() []row {
	const applied = install | hold | finish | maintain // objects have to exist
	return []row{
		{install | remove, "revoke-unlisted", r.revokeUnlisted},                       // rights on the seed that the platform revoked
		{remove, "leave", r.leave},                                                    // ends it if no call is needed
		{undo | remove, "order", r.removedInOrder},                                    // dependents and later slots are removed first
		{install | foresee, "find-cluster", r.findCluster},                            // the installation's Cluster
		{install | foresee, "complete", r.complete},                                   // fields that spec leaves to the catalogue; an owner
		{install | foresee, "unpaused", r.unpaused},                                   // neither the Cluster nor the installation is paused
		{install | foresee, "kkp-addon", r.kkpAddonGone},                              // waits until KKP's own add-on of that name is gone
		{install | renew | foresee, "load-record", r.loadRecord},                      // the last applied revision, read once per process
		{install | foresee, "share", r.withinShare},                                   // installations beyond it are not installed or updated
		{install | foresee, "resolve", r.resolve},                                     // the add-on's version that fits
		{install | foresee, "granted", r.granted},                                     // the platform's values that a set grants
		{install, "pinned", r.pinned},                                                 // switches to hold or finish
		{foresee, "pinned", staysPinned},                                              // nothing would be rendered
		{install | foresee, "adopts", r.adopts},                                       // the annotations about adoption can be read
		{install | foresee, "values", r.resolveValues},                                // the layers of values, checked against the form
		{install | foresee, "fetch", r.fetch},                                         // the version's content, from the store
		{everything, "connect", r.connect},                                            // a live connection to the user cluster
		{install | foresee, "compare", r.compare},                                     // inputs equal: no render, no write
		{install, "order", r.inOrder},                                                 // slots and dependsOn: the awaited ones are ready
		{install | foresee, "required", r.required},                                   // kinds that the version requires of the cluster
		{install | foresee, "render", r.render},                                       // objects from content and values
		{install | foresee, "allowed", r.allowed},                                     // refuses objects forbidden to Custom catalogues
		{install, "take-over", installs((*installer.Run).FindExtras)},                 // helm: other objects of a followed release
		{install, "access", r.access},                                                 // credentials for the hub, for which a revision waits
		{applied&^install | renew, "access", r.maintainAccess},                        // the same, as recorded
		{install, "intent", r.recordIntent},                                           // on record before the first write
		{install, "revoke-surplus", r.revokeSurplus},                                  // the oldest credentials of revisions that never worked
		{install, "apply", r.apply},                                                   // by stage; early hooks run after namespaces and CRDs
		{finish, "apply", installs((*installer.Run).GoBack)},                          // the objects on record, stage by stage
		{install | finish, "record", installs((*installer.Run).RecordApplied)},        // on record with every UID
		{applied, "release", installs((*installer.Run).WriteRelease)},                 // helm: the copy that `helm list` shows; before drift
		{applied &^ finish, "inherit", installs((*installer.Run).AdoptShared)},        // shared objects that a removed installation leaves
		{applied &^ finish, "drift", installs((*installer.Run).RepairDrift)},          // now and then: compares the cluster with the record
		{applied &^ finish, "copies", installs((*installer.Run).CopyPullSecret)},      // updates copies of the pull Secret; apply makes new ones
		{applied&^finish | renew, "secrets", installs((*installer.Run).ApplySecrets)}, // Secrets with credentials follow them
		{applied &^ maintain, "post-hooks", installs((*installer.Run).PostHooks)},     // hooks that run once everything is applied
		{applied, "health", installs((*installer.Run).Assess)},                        // until all objects work; atomic upgrades have a deadline
		{applied &^ maintain, "last-hooks", installs((*installer.Run).LastHooks)},     // hooks that run once all objects work, if it is atomic
		{applied &^ maintain, "prune", installs((*installer.Run).Prune)},              // objects that the revision no longer has
		{applied &^ maintain, "prune-copies", installs((*installer.Run).PruneCopies)}, // of the pull Secret, which the revision no longer needs
		{install | hold, "revoke-previous", r.revokePrevious},                         // credentials that the revision no longer has
		{applied | renew, "missing-access", r.accessMissing},                          // reports credentials that are missing
		{applied | renew, "wait", restUntilSurvey},                                    // until the next comparison or renewal
		{undo | remove, "find-secrets", r.findSecrets},                                // Secrets with credentials that are not on record
		{undo | remove, "pre-delete", r.preDelete},                                    // hooks that run before anything is removed
		{undo | remove, "remove", installs((*installer.Run).RemoveObjects)},           // in reverse order, by UID, until nothing is left
		{undo | remove, "post-delete", installs((*installer.Run).PostDelete)},         // hooks that run after everything is removed
		{undo | remove, "namespaces", installs((*installer.Run).RemoveNamespaces)},    // the namespaces that such hooks ran in
		{undo | remove, "secrets", r.dropSecrets},                                     // Secrets with credentials
		{undo | remove, "remove-copies", installs((*installer.Run).DropPullSecret)},   // copies of the pull Secret that no installation needs
		{undo | remove, "release", installs((*installer.Run).RemoveRelease)},          // helm: the release's Secrets
		{undo | remove, "revoke", r.revokeAll},                                        // credentials and their rights, on the seed
		{undo | remove, "forget", r.forgetRecords},                                    // last, so that a crash restarts the removal
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
func (r *Reconciler) run(ctx context.Context, f *facts, one course) *loop.Outcome {
	return loop.Run(ctx, r.stepsOf[one], f)
}

// installs is a step that only calls the installer.
func installs(step func(*installer.Run, context.Context) *loop.Outcome) func(context.Context, *facts) *loop.Outcome {
	return func(ctx context.Context, f *facts) *loop.Outcome { return step(&f.run, ctx) }
}

// restUntilSurvey ends a reconciliation that has no more work, until the next comparison or renewal. Nothing is
// compared while spec.paused, so an overdue comparison must not cause a reconciliation.
func restUntilSurvey(_ context.Context, f *facts) *loop.Outcome {
	if f.installation.Spec.Paused {
		return &loop.Outcome{Kind: loop.Done, Recheck: f.nextAccess()}
	}
	return &loop.Outcome{Kind: loop.Done, Recheck: backoff.Sooner(f.run.NextSurvey(), f.nextAccess())}
}
