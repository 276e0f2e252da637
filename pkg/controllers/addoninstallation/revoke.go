package addoninstallation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/access/rights"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// revokeFormer takes away what only earlier revisions had, once the rest of them is gone, and what a version had on
// the seed that was given up before it was recorded.
func (r *Reconciler) revokeFormer(ctx context.Context, f *facts) loop.Outcome {
	record := f.pass.Record()
	if r.Access == nil || len(record.Superseded) > 0 || record.Unreadable() != nil { // what is not known may have some
		return nil
	}
	former, err := r.unrecordedAccess(ctx, f)
	if err != nil {
		return failed(err)
	}
	if former = append(former, record.FormerAccess...); len(former) == 0 {
		return nil
	}
	return r.revokeRecorded(ctx, f, former)
}

// revokeSurplus takes away the oldest that earlier revisions had where many of them never worked: revokeFormer waits for one that does.
func (r *Reconciler) revokeSurplus(ctx context.Context, f *facts) loop.Outcome {
	surplus := f.pass.Record().SurplusAccess()
	if r.Access == nil || len(surplus) == 0 {
		return nil
	}
	return r.revokeRecorded(ctx, f, surplus)
}

// revokeRecorded takes former credentials away, in the user cluster first, and from the record.
func (r *Reconciler) revokeRecorded(ctx context.Context, f *facts, former []string) loop.Outcome {
	secrets := secretNames(f, former)
	if stop := f.pass.FindKept(ctx, secrets...); stop != nil {
		return outcomeOf(stop)
	}
	if stop := f.pass.DropKept(ctx, secrets...); stop != nil {
		return outcomeOf(stop)
	}
	holder, err := r.holder(ctx, f, f.ofRecord())
	if err != nil {
		return failed(err)
	}
	if err := r.Access.Revoke(ctx, holder, former...); err != nil {
		return failed(err)
	}
	if len(f.pass.Record().FormerAccess) == 0 {
		return nil
	}
	return outcomeOf(f.pass.Amend(ctx, func(kept *revision.Record) {
		isRevoked := func(name string) bool { return slices.Contains(former, name) }
		kept.FormerAccess = slices.DeleteFunc(slices.Clone(kept.FormerAccess), isRevoked)
		kept.Kept = slices.DeleteFunc(slices.Clone(kept.Kept), func(entry ownership.Entry) bool { return slices.Contains(secrets, entry.Name) })
	}))
}

// unrecordedAccess are the credentials that the seed holds of the installation, and its record does not know.
func (r *Reconciler) unrecordedAccess(ctx context.Context, f *facts) (names []string, err error) {
	held := &metav1.PartialObjectMetadataList{}
	held.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err = r.AccessHeld.List(ctx, held, client.InNamespace(f.installation.Namespace), client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the credentials of agents: %w", err)
	}
	for i := range held.Items {
		secret := &held.Items[i]
		name, isStored := strings.CutPrefix(secret.Name, rights.StoredName(f.pass.Owner.ID(), ""))
		isOurs := isStored && secret.Annotations[kubermaticv1.AnnotationAccessOf] == f.installation.Name
		if isOurs && !slices.Contains(f.pass.Record().AccessNames(), name) {
			names = append(names, name)
		}
	}
	return names, nil
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
