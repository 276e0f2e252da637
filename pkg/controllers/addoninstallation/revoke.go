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
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/access/rights"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// revokePrevious revokes credentials that only earlier revisions had, once their other objects are gone, and those of a
// version that was given up before it was recorded.
func (r *Reconciler) revokePrevious(ctx context.Context, f *facts) *loop.Outcome {
	record := f.run.Record()
	if r.Access == nil || len(record.Superseded) > 0 || record.Unreadable() != nil { // an unreadable record may have credentials
		return nil
	}
	previous, err := r.unrecordedAccess(ctx, f)
	if err != nil {
		return failed(err)
	}
	previous = append(previous, record.PreviousAccess...)
	return r.revokeRecorded(ctx, f, previous, record.PreviousSecrets)
}

// revokeSurplus revokes the oldest credentials of earlier revisions if many of them never worked: revokePrevious waits
// for a working one.
func (r *Reconciler) revokeSurplus(ctx context.Context, f *facts) *loop.Outcome {
	if r.Access == nil {
		return nil
	}
	return r.revokeRecorded(ctx, f, f.run.Record().SurplusAccess(), f.run.Record().SurplusSecrets())
}

// revokeRecorded revokes previous credentials, in the user cluster first, and removes them from the record. Named are
// values of secretName whose Secrets are removed too.
func (r *Reconciler) revokeRecorded(ctx context.Context, f *facts, previous, named []string) *loop.Outcome {
	if len(previous)+len(named) == 0 {
		return nil
	}
	current := currentSecrets(f)
	secrets := slices.DeleteFunc(previousSecrets(f, previous, named), func(name string) bool { return slices.Contains(current, name) })
	if stop := f.run.FindSecrets(ctx, secrets...); stop != nil {
		return stop
	}
	if stop := f.run.DropSecrets(ctx, secrets...); stop != nil {
		return stop
	}
	holder, err := r.holder(ctx, f, f.ofRecord())
	if err != nil {
		return failed(err)
	}
	if err := r.Access.Revoke(ctx, holder, previous...); err != nil {
		return failed(err)
	}
	if len(f.run.Record().PreviousAccess)+len(f.run.Record().PreviousSecrets) == 0 {
		return nil
	}
	return f.run.Amend(ctx, func(record *revision.Record) {
		isRevoked := func(name string) bool { return slices.Contains(previous, name) }
		isRemoved := func(entry ownership.Entry) bool { return slices.Contains(secrets, entry.Name) }
		isNamed := func(name string) bool { return slices.Contains(named, name) }
		record.PreviousAccess = slices.DeleteFunc(slices.Clone(record.PreviousAccess), isRevoked)
		record.PreviousSecrets = slices.DeleteFunc(slices.Clone(record.PreviousSecrets), isNamed)
		record.ManagedSecrets = slices.DeleteFunc(slices.Clone(record.ManagedSecrets), isRemoved)
	})
}

// unrecordedAccess are the credentials on the seed that the installation's record lacks.
func (r *Reconciler) unrecordedAccess(ctx context.Context, f *facts) (names []string, err error) {
	held := &metav1.PartialObjectMetadataList{}
	held.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err = r.AccessHeld.List(ctx, held, client.InNamespace(f.installation.Namespace), client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the credentials of agents: %w", err)
	}
	for i := range held.Items {
		secret := &held.Items[i]
		name, isStored := strings.CutPrefix(secret.Name, rights.StoredName(f.run.Owner.ID(), ""))
		isOurs := isStored && secret.Annotations[kubermaticv1.AnnotationAccessOf] == f.installation.Name
		if isOurs && !slices.Contains(f.run.Record().AccessNames(), name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// currentSecrets are the names of the recorded credentials' Secrets in the user cluster.
func currentSecrets(f *facts) (names []string) {
	for _, one := range f.run.Record().Access {
		names = append(names, rights.SecretName(f.installation.Name, one))
	}
	return names
}

// previousSecrets are the names of previous credentials' Secrets in the user cluster, and of those with these values of
// secretName.
func previousSecrets(f *facts, credentials, named []string) (names []string) {
	for _, name := range credentials {
		names = append(names, rights.DefaultSecretName(f.installation.Name, name))
	}
	for _, name := range named {
		names = append(names, rights.NamedSecret(f.installation.Name, name))
	}
	return names
}

// allSecrets are the names of all Secrets with credentials that a revision has, or an earlier one had.
func allSecrets(f *facts) []string {
	record := f.run.Record()
	return append(currentSecrets(f), previousSecrets(f, record.PreviousAccess, record.PreviousSecrets)...)
}

// findSecrets finds Secrets with credentials that a process wrote and that are not on record because the process ended:
// they do not keep their namespace.
func (r *Reconciler) findSecrets(ctx context.Context, f *facts) *loop.Outcome {
	return f.run.FindSecrets(ctx, allSecrets(f)...)
}

// dropSecrets removes the Secrets with credentials from the user cluster, after the objects that used them.
func (r *Reconciler) dropSecrets(ctx context.Context, f *facts) *loop.Outcome {
	return f.run.DropSecrets(ctx, allSecrets(f)...)
}

// revokeAll revokes all credentials of an installation on the seed: the recorded ones, which a cache may not show yet,
// and others that exist.
func (r *Reconciler) revokeAll(ctx context.Context, f *facts) *loop.Outcome {
	record := f.run.Record()
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

// revokeHeld revokes the existing credentials of an installation that may have no cluster.
func (r *Reconciler) revokeHeld(ctx context.Context, installation client.Object) *loop.Outcome {
	if r.Access == nil {
		return nil
	}
	return failed(r.Access.RevokeAll(ctx, installation.GetNamespace(), installation.GetName()))
}
