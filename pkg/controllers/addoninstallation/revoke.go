package addoninstallation

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/access/rights"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// revokeFormer takes away what only earlier revisions had, once the rest of them is gone.
func (r *Reconciler) revokeFormer(ctx context.Context, f *facts) loop.Outcome {
	record := f.pass.Record()
	if len(record.FormerAccess) == 0 || len(record.Superseded) > 0 || r.Access == nil {
		return nil
	}
	former := secretNames(f, record.FormerAccess)
	if stop := f.pass.FindKept(ctx, former...); stop != nil {
		return outcomeOf(stop)
	}
	if stop := f.pass.DropKept(ctx, former...); stop != nil {
		return outcomeOf(stop)
	}
	holder, err := r.holder(ctx, f, f.ofRecord())
	if err != nil {
		return failed(err)
	}
	if err := r.Access.Revoke(ctx, holder, record.FormerAccess...); err != nil {
		return failed(err)
	}
	return outcomeOf(f.pass.Amend(ctx, func(kept *revision.Record) {
		kept.FormerAccess = nil
		kept.Kept = slices.DeleteFunc(slices.Clone(kept.Kept), func(entry ownership.Entry) bool { return slices.Contains(former, entry.Name) })
	}))
}

// secretNames are those of the Secrets of credentials in the user cluster.
func secretNames(f *facts, credentials []string) []string {
	names := make([]string, len(credentials))
	for at, name := range credentials {
		names[at] = rights.SecretName(f.installation.Name, name)
	}
	return names
}

// findKept has the Secrets with credentials known that a process wrote which ended before they were on
// record: they are no reason for their namespace to stay.
func (r *Reconciler) findKept(ctx context.Context, f *facts) loop.Outcome {
	return outcomeOf(f.pass.FindKept(ctx, secretNames(f, f.pass.Record().AccessNames())...))
}

// dropKept removes the Secrets with credentials from the user cluster, behind what used them.
func (r *Reconciler) dropKept(ctx context.Context, f *facts) loop.Outcome {
	return outcomeOf(f.pass.DropKept(ctx, secretNames(f, f.pass.Record().AccessNames())...))
}

// revokeAll takes away on the seed what an installation has there: what is on record, which a cache may not
// show yet, and what is held besides.
func (r *Reconciler) revokeAll(ctx context.Context, f *facts) loop.Outcome {
	record := f.pass.Record()
	if r.Access == nil || !record.HasAccess() {
		return r.revokeHeld(ctx, f.installation)
	}
	holder, err := r.holder(ctx, f, f.ofRecord())
	if err != nil {
		return failed(err)
	}
	if err := r.Access.Revoke(ctx, holder, record.AccessNames()...); err != nil {
		return failed(err)
	}
	return r.revokeHeld(ctx, f.installation)
}

// revokeHeld takes away what is held, of an installation that may have no cluster.
func (r *Reconciler) revokeHeld(ctx context.Context, installation client.Object) loop.Outcome {
	if r.Access == nil {
		return nil
	}
	if err := r.Access.RevokeAll(ctx, installation.GetNamespace(), installation.GetName()); err != nil {
		return failed(err)
	}
	return nil
}
