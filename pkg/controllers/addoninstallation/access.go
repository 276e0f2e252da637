package addoninstallation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/access"
	"github.com/trellis-addons/trellis/pkg/clusters/access/rights"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/install/installer"
)

// Neighbours reports which clusters share a namespace.
type Neighbours interface {
	// Shares says whether other Clusters have the same namespace as a cluster.
	Shares(ctx context.Context, cluster target.Ref) (bool, error)
}

// Access maintains credentials for the hub on the seed.
type Access interface {
	// Keep creates, restores and renews the requested credentials.
	Keep(
		ctx context.Context, holder access.Holder, asked []kubermaticv1.Access, memory *access.Memory, now time.Time,
	) ([]access.Status, error)
	// Content is the content of a credential's Secret in the user cluster.
	Content(ctx context.Context, holder access.Holder, one kubermaticv1.Access) (content map[string][]byte, digest string, err error)
	// RevokeUnlisted removes bindings that the platform no longer lists, and revokes credentials issued before rotate-at had
	// its value.
	RevokeUnlisted(ctx context.Context, installation types.NamespacedName, rotateAt string) error
	// Revoke revokes the named credentials, RevokeAll all of them.
	Revoke(ctx context.Context, holder access.Holder, names ...string) error
	RevokeAll(ctx context.Context, namespace, installation string) error
}

// accessFacts are found by step access.
type accessFacts struct {
	// statuses are the states of the credentials that the reconciliation maintained.
	statuses []access.Status
	// accessFailure is the error of maintaining them, if the error did not end the reconciliation; otherwise nil.
	accessFailure error
}

// isAccessAwaited says whether a reconciliation ended because a new revision waits for its credentials.
func isAccessAwaited(f *facts, outcome *loop.Outcome) bool {
	return outcome.Condition == kubermaticv1.ConditionAccessReady && !f.run.Decision.IsApplied()
}

// revokeUnlisted revokes rights that the platform no longer lists, and credentials that have to be replaced, regardless of
// how the reconciliation ends.
func (r *Reconciler) revokeUnlisted(ctx context.Context, f *facts) *loop.Outcome {
	if r.Access == nil {
		return nil
	}
	rotateAt := f.installation.Annotations[kubermaticv1.AnnotationRotateAt]
	return failed(r.Access.RevokeUnlisted(ctx, client.ObjectKeyFromObject(f.installation), rotateAt))
}

// access provides the credentials for the hub before a revision that needs them is recorded. An applied revision does
// not wait: accessMissing reports missing credentials.
func (r *Reconciler) access(ctx context.Context, f *facts) *loop.Outcome {
	decision, record := f.run.Decision, f.run.Record()
	if decision.IsRecorded() || decision.FromRecord {
		err := r.keepAccess(ctx, f, record.Access, f.ofRecord())
		if decision.IsApplied() {
			f.accessFailure = err
			return nil
		}
		return cmp.Or(failed(err), f.accessMissing())
	}
	wanted := f.choice.Version.Template.Access
	if taken := takenByManifest(f, wanted); taken != nil {
		return taken
	}
	err := r.keepAccess(ctx, f, wanted, askedBy{addonOf(f.installation), f.choice.Core})
	return cmp.Or(failed(err), f.accessMissing())
}

// takenByManifest ends the reconciliation if the add-on renders a Secret with the name of a credential's Secret, or if two
// credentials have one: with one installation's name only, since a catalogue is checked for any.
func takenByManifest(f *facts, wanted []kubermaticv1.Access) *loop.Outcome {
	for at, one := range wanted {
		name := rights.SecretName(f.installation.Name, one)
		if slices.ContainsFunc(wanted[:at], func(other kubermaticv1.Access) bool {
			return rights.SecretName(f.installation.Name, other) == name
		}) {
			return loop.Stall(kubermaticv1.ConditionRendered, kubermaticv1.ReasonRenderFailed, fmt.Sprintf(
				"Secret %q is used by two accesses of the add-on: give one of them another secretName", name))
		}
	}
	for _, object := range f.run.Objects {
		isSecret := object.GetAPIVersion() == "v1" && object.GetKind() == "Secret"
		if !isSecret || object.GetNamespace() != f.installation.Spec.TargetNamespace {
			continue
		}
		for _, one := range wanted {
			if object.GetName() == rights.SecretName(f.installation.Name, one) {
				return loop.Stall(kubermaticv1.ConditionRendered, kubermaticv1.ReasonRenderFailed, fmt.Sprintf(
					"Secret %q of the add-on has the same name as the Secret of access %q: rename one of them", object.GetName(), one.Name))
			}
		}
	}
	return nil
}

// maintainAccess maintains the recorded credentials, except those that the reconciliation already maintained as another
// version asks for them. If the platform refuses the other version's rights, the applied version keeps its own. The
// states do not end the reconciliation here: accessMissing reports them.
func (r *Reconciler) maintainAccess(ctx context.Context, f *facts) *loop.Outcome {
	if record := f.run.Record(); record != nil {
		f.keepToRecord()
		f.accessFailure = errors.Join(f.accessFailure, r.keepAccess(ctx, f, f.unattended(record.Access), f.ofRecord()))
	}
	return nil
}

// keepToRecord excludes Secrets that only another version asks for from the user cluster, and drops refusals of that
// version for names that are on record. The recorded version's Secret keeps its name.
func (f *facts) keepToRecord() {
	recorded := map[string]string{}
	for _, one := range f.run.Record().Access {
		recorded[one.Name] = rights.SecretName(f.installation.Name, one)
	}
	var statuses []access.Status
	var managed []installer.ManagedSecret
	for _, one := range f.statuses {
		isRefused := one.Problem != nil && one.Problem.Reason == kubermaticv1.ReasonRightsRefused
		name, isOnRecord := recorded[one.Name]
		if isRefused && isOnRecord {
			continue
		}
		for _, secret := range f.run.Secrets {
			if secret.Name == one.Secret && isOnRecord {
				secret.Name = name
				managed = append(managed, secret)
			}
		}
		if isOnRecord {
			one.Secret = name
		}
		statuses = append(statuses, one)
	}
	f.statuses, f.run.Secrets = statuses, managed
}

// unattended are the credentials that the reconciliation has not maintained yet.
func (f *facts) unattended(all []kubermaticv1.Access) []kubermaticv1.Access {
	return slices.DeleteFunc(slices.Clone(all), func(one kubermaticv1.Access) bool {
		return slices.ContainsFunc(f.statuses, func(status access.Status) bool { return status.Name == one.Name })
	})
}

// keepAccess creates, restores and renews credentials, and passes their Secrets to the installer. If one fails, it
// continues with the others.
func (r *Reconciler) keepAccess(ctx context.Context, f *facts, asked []kubermaticv1.Access, by askedBy) error {
	if len(asked) == 0 {
		return nil
	}
	if r.Access == nil {
		f.statuses = append(f.statuses, accessUnknown(f.installation.Name, asked)...)
		return nil
	}
	holder, err := r.holder(ctx, f, by)
	if err != nil {
		return err
	}
	statuses, err := r.Access.Keep(ctx, holder, asked, &f.memory.access, f.run.Now)
	f.statuses = append(f.statuses, statuses...)
	for at, status := range statuses {
		if !status.Usable {
			continue
		}
		f.run.Secrets = append(f.run.Secrets, installer.ManagedSecret{
			Name: status.Secret, Digest: status.Digest,
			Content: func(ctx context.Context) (map[string][]byte, string, error) {
				return r.Access.Content(ctx, holder, asked[at])
			},
		})
	}
	if err != nil {
		return fmt.Errorf("reconciling credentials for the hub: %w", err)
	}
	return nil
}

// accessUnknown are the states of credentials if the platform issues none.
func accessUnknown(installation string, asked []kubermaticv1.Access) []access.Status {
	statuses := make([]access.Status, len(asked))
	for at, one := range asked {
		statuses[at] = access.Status{
			Name: one.Name, Type: rights.TypeOf(one), Secret: rights.SecretName(installation, one), Problem: access.WithoutHub(),
		}
	}
	return statuses
}

// askedBy is the origin of a request for credentials: the add-on, and whether it is in a Core catalogue.
type askedBy struct {
	addon  string
	isCore bool
}

// ofRecord is the origin of the recorded credentials.
func (f *facts) ofRecord() askedBy {
	by := askedBy{addon: addonOf(f.installation)}
	if record := f.run.Record(); record != nil {
		by = askedBy{record.Addon, record.Core}
	}
	return by
}

// holder is the installation as the holder of credentials. Once no Core catalogue has the add-on, credentials that a
// Core catalogue requested are limited to the rights of other add-ons.
func (r *Reconciler) holder(ctx context.Context, f *facts, by askedBy) (access.Holder, error) {
	isShared, err := r.Neighbours.Shares(ctx, f.cluster.Ref)
	if err != nil {
		return access.Holder{}, err
	}
	if by.isCore {
		entry, err := r.Marks.Entry(ctx, r.Client, client.ObjectKey{Namespace: r.Options.CatalogueNamespace, Name: by.addon})
		if err != nil {
			return access.Holder{}, err
		}
		by.isCore = entry == nil || entry.Type == kubermaticv1.CatalogueCore
	}
	return access.Holder{
		Cluster: f.cluster.Ref, ClusterOwner: f.cluster.Owner, Owner: f.run.Owner, Installation: f.installation.Name,
		Addon: by.addon, IsShared: isShared, Core: by.isCore,
		RotateAt: f.installation.Annotations[kubermaticv1.AnnotationRotateAt], ReconcileAt: f.run.Asked.ReconcileAt,
	}, nil
}

// worstAccess is the first unusable credential or, without one, the first that has a problem; nil if none has.
func (f *facts) worstAccess() (worst *access.Status) {
	for at := range f.statuses {
		one := &f.statuses[at]
		if one.Problem == nil {
			continue
		}
		if worst == nil || worst.Usable && !one.Usable {
			worst = one
		}
	}
	return worst
}

// accessMissing ends the reconciliation if a credential is unusable; nil if all are usable.
func (f *facts) accessMissing() *loop.Outcome {
	worst := f.worstAccess()
	if worst == nil || worst.Usable {
		return nil
	}
	outcome := loop.Wait(kubermaticv1.ConditionAccessReady, worst.Problem.Reason, worst.Problem.Message, f.nextAccess())
	if worst.Problem.IsLasting {
		outcome.Kind = loop.Stalled
	}
	return outcome
}

// accessMissing reports a missing credential at the end of a reconciliation, after all steps that need none. The next
// comparison of installed objects is not delayed.
func (r *Reconciler) accessMissing(ctx context.Context, f *facts) *loop.Outcome {
	if f.accessFailure != nil {
		return failed(f.accessFailure)
	}
	return earlier(f.accessMissing(), restUntilSurvey(ctx, f))
}

// nextAccess is the time until credentials are checked again; 0 if it is unknown.
func (f *facts) nextAccess() (next time.Duration) {
	for _, one := range f.statuses {
		if one.Next.IsZero() {
			continue
		}
		left := max(one.Next.Sub(f.run.Now), time.Second)
		if next == 0 || left < next {
			next = left
		}
	}
	return next
}
