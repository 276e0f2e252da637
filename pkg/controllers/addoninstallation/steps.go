package addoninstallation

import (
	"context"

	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// steps of a pass, in order.
func (r *Reconciler) steps() []loop.Step[facts] {
	return []loop.Step[facts]{
		{Name: "withhold", Run: r.withhold},                               // rights that the platform lists no more, on the seed
		{Name: "find-cluster", Run: r.findCluster},                        // the Cluster that it is for
		{Name: "complete", Run: r.complete},                               // what spec leaves to the catalogue; an owner outside of KKP's
		{Name: "unpaused", Run: r.unpaused},                               // neither the Cluster nor the installation is paused
		{Name: "kkp-addon", Run: r.kkpAddonGone},                          // KKP's own add-on of that name has to be gone
		{Name: "load-record", Run: r.loadRecord},                          // what was applied last, read once per process
		{Name: "resolve", Run: r.resolve},                                 // the add-on's version that fits
		{Name: "granted", Run: r.granted},                                 // the platform's values that a set grants
		{Name: "pinned", Run: r.pinned},                                   // of content that only the record has, the rest of the pass
		{Name: "adopts", Run: r.adopts},                                   // what is said of adoption can be read
		{Name: "values", Run: r.resolveValues},                            // the layers of values, checked against the form
		{Name: "fetch", Run: r.fetch},                                     // the version's content, from the store
		{Name: "connect", Run: r.connect},                                 // a live connection to the user cluster
		{Name: "compare", Run: r.compare},                                 // inputs equal: no render, no write
		{Name: "order", Run: r.inTurn},                                    // what comes first by slot and dependsOn is as far as it has to be
		{Name: "required", Run: r.required},                               // kinds that the version needs the cluster to serve
		{Name: "render", Run: r.render},                                   // content and values become objects; helm: its release name is free
		{Name: "allowed", Run: r.allowed},                                 // what Custom catalogues may not have
		{Name: "take-over", Run: installs((*installer.Pass).FindExtras)},  // helm: what a release that is followed has besides
		{Name: "access", Run: r.access},                                   // credentials for the hub, which a revision waits for
		{Name: "intent", Run: r.recordIntent},                             // on record before the first write
		{Name: "surplus-access", Run: r.revokeSurplus},                    // the oldest credentials of many revisions that never worked
		{Name: "apply", Run: r.apply},                                     // stage by stage; behind namespaces and CRDs hooks come first
		{Name: "record", Run: installs((*installer.Pass).RecordApplied)},  // on record with every UID
		{Name: "release", Run: installs((*installer.Pass).WriteRelease)},  // helm: the copy that `helm list` shows
		{Name: "inherit", Run: installs((*installer.Pass).AdoptShared)},   // what was used of an installation that went, or left it
		{Name: "drift", Run: installs((*installer.Pass).RepairDrift)},     // now and then, healthy or not: is it still what was applied?
		{Name: "copies", Run: installs((*installer.Pass).CopyPullSecret)}, // copies of the pull Secret follow it; new ones come in apply
		{Name: "kept", Run: installs((*installer.Pass).KeepSecrets)},      // so do Secrets with credentials
		{Name: "post-hooks", Run: installs((*installer.Pass).PostHooks)},  // hooks that run once everything is applied
		{Name: "health", Run: installs((*installer.Pass).Assess)},         // until everything works
		{Name: "last-hooks", Run: installs((*installer.Pass).LastHooks)},  // the same, where atomic asks for health first
		{Name: "prune", Run: installs((*installer.Pass).Prune)},           // what the new revision no longer has
		{Name: "old-copies", Run: installs((*installer.Pass).DropFormer)}, // of the pull Secret, which only it had
		{Name: "old-access", Run: r.revokeFormer},                         // credentials that the new revision no longer has
		{Name: "access-stands", Run: r.accessStands},                      // what works without a credential is said to lack it
		{Name: "rest", Run: restUntilSurvey},                              // until the next comparison
	}
}

// maintenanceSteps maintain what is installed where what is wanted can't be had.
func (r *Reconciler) maintenanceSteps() []loop.Step[facts] {
	return []loop.Step[facts]{
		{Name: "connect", Run: r.connect},                                 // a live connection to the user cluster
		{Name: "access", Run: r.maintainAccess},                           // credentials for the hub, as they are on record
		{Name: "release", Run: installs((*installer.Pass).WriteRelease)},  // before drift, after which nothing is asked for
		{Name: "inherit", Run: installs((*installer.Pass).AdoptShared)},   // what was used of an installation that went, or left it
		{Name: "drift", Run: installs((*installer.Pass).RepairDrift)},     // is it still what was applied?
		{Name: "copies", Run: installs((*installer.Pass).CopyPullSecret)}, // copies of the pull Secret follow it
		{Name: "kept", Run: installs((*installer.Pass).KeepSecrets)},      // so do Secrets with credentials
		{Name: "health", Run: installs((*installer.Pass).Assess)},         // an atomic upgrade has a deadline, and the status says what is there
		{Name: "access-stands", Run: r.accessStands},                      // what works without a credential is said to lack it
		{Name: "rest", Run: restUntilSurvey},                              // until the next comparison
	}
}

// rollbackSteps carry a rollback on, or another intent that only the record has, where the pass
// ended before it. They are the steps of a pass from the first write on, but for inherit and drift,
// which the next pass has.
func (r *Reconciler) rollbackSteps() []loop.Step[facts] {
	return []loop.Step[facts]{
		{Name: "connect", Run: r.connect},                                 // a live connection to the user cluster
		{Name: "access", Run: r.maintainAccess},                           // credentials for the hub, as they are on record
		{Name: "apply", Run: installs((*installer.Pass).GoBack)},          // the objects on record, stage by stage
		{Name: "record", Run: installs((*installer.Pass).RecordApplied)},  // on record with every UID
		{Name: "release", Run: installs((*installer.Pass).WriteRelease)},  // helm: the copy that `helm list` shows
		{Name: "post-hooks", Run: installs((*installer.Pass).PostHooks)},  // hooks that run once everything is applied
		{Name: "health", Run: installs((*installer.Pass).Assess)},         // until everything works
		{Name: "last-hooks", Run: installs((*installer.Pass).LastHooks)},  // the same, where atomic asks for health first
		{Name: "prune", Run: installs((*installer.Pass).Prune)},           // what only the failed revision had
		{Name: "old-copies", Run: installs((*installer.Pass).DropFormer)}, // of the pull Secret, which only it had
		{Name: "access-stands", Run: r.accessStands},                      // what works without a credential is said to lack it
		{Name: "rest", Run: restUntilSurvey},                              // until the next comparison
	}
}

// pausedSteps are what goes on in an installation that is paused, while its cluster is not.
func (r *Reconciler) pausedSteps() []loop.Step[facts] {
	return []loop.Step[facts]{
		{Name: "load-record", Run: r.loadRecord},                     // what was applied last
		{Name: "connect", Run: r.connect},                            // a live connection to the user cluster
		{Name: "access", Run: r.maintainAccess},                      // credentials for the hub are renewed
		{Name: "kept", Run: installs((*installer.Pass).KeepSecrets)}, // and come into the user cluster
		{Name: "access-stands", Run: r.accessStands},                 // when to look again, where one is missing
		{Name: "rest", Run: restUntilSurvey},                         // until the next renewal
	}
}

// removalSteps of an installation that is being deleted, in order. Done takes the finalizer off.
func (r *Reconciler) removalSteps() []loop.Step[facts] {
	return append([]loop.Step[facts]{
		{Name: "withhold", Run: r.withhold}, // rights that the platform lists no more, and what rotate-at ends, also while nothing can be removed
		{Name: "leave", Run: r.leave},       // cluster deleted or gone, nothing applied, or Orphan: no call
	}, r.undoingSteps()...)
}

// undoingSteps remove what an installation has, also of one that lives while its Cluster is being
// deleted.
func (r *Reconciler) undoingSteps() []loop.Step[facts] {
	return []loop.Step[facts]{
		{Name: "order", Run: r.removedInTurn},                                  // what depends on it, or has a later slot, goes first
		{Name: "connect", Run: r.connect},                                      // a live connection to the user cluster
		{Name: "find-kept", Run: r.findKept},                                   // Secrets with credentials that no record knows
		{Name: "pre-delete", Run: r.preDelete},                                 // hooks that run before anything goes
		{Name: "remove", Run: installs((*installer.Pass).RemoveObjects)},       // in reverse order, by UID, until nothing is left
		{Name: "post-delete", Run: installs((*installer.Pass).PostDelete)},     // hooks that run after everything went
		{Name: "emptied", Run: installs((*installer.Pass).RemoveNamespaces)},   // the namespaces that such hooks ran in
		{Name: "kept", Run: r.dropKept},                                        // Secrets with credentials
		{Name: "last-copies", Run: installs((*installer.Pass).DropPullSecret)}, // copies of the pull Secret that nobody else needs
		{Name: "release", Run: installs((*installer.Pass).RemoveRelease)},      // helm: the release's Secrets
		{Name: "revoke", Run: r.revokeAll},                                     // what the credentials were good for, on the seed
		{Name: "forget", Run: r.forgetRecords},                                 // last, so that a crash begins again
	}
}

// installs is a step that the installer has by itself.
func installs(step func(*installer.Pass, context.Context) *installer.Stop) func(context.Context, *facts) loop.Outcome {
	return func(ctx context.Context, f *facts) loop.Outcome { return outcomeOf(step(&f.pass, ctx)) }
}

// restUntilSurvey ends a pass that has nothing more to do, until the next comparison or renewal. Of what is
// paused nothing is compared: what is due there stays due, and a pass for it would follow the other.
func restUntilSurvey(_ context.Context, f *facts) loop.Outcome {
	if f.installation.Spec.Paused {
		return loop.Done{Recheck: f.nextAccess()}
	}
	return loop.Done{Recheck: backoff.Sooner(f.pass.NextSurvey(), f.nextAccess())}
}
