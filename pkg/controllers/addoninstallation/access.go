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
	"github.com/trellis-addons/trellis/pkg/access"
	"github.com/trellis-addons/trellis/pkg/access/rights"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/target"
)

// Neighbours tells which clusters are alone.
type Neighbours interface {
	// Shares says whether other Clusters have the namespace of a cluster too.
	Shares(ctx context.Context, cluster target.Ref) (bool, error)
}

// Access keeps credentials for the hub on the seed.
type Access interface {
	// Keep makes, puts back and renews what is asked for.
	Keep(
		ctx context.Context, holder access.Holder, asked []kubermaticv1.Access, memory *access.Memory, now time.Time,
	) ([]access.Standing, error)
	// Content is what the Secret of a credential has in the user cluster.
	Content(ctx context.Context, holder access.Holder, one kubermaticv1.Access) (content map[string][]byte, digest string, err error)
	// Withhold takes bindings away that the platform does not list any more, and ends what was issued before rotate-at had its value.
	Withhold(ctx context.Context, installation types.NamespacedName, rotateAt string) error
	// Revoke and RevokeAll take away some credentials, and all.
	Revoke(ctx context.Context, holder access.Holder, names ...string) error
	RevokeAll(ctx context.Context, namespace, installation string) error
}

// accessFacts are those of step access.
type accessFacts struct {
	// standings are how the credentials stand that the pass looked after.
	standings []access.Standing
	// accessFailure is why it could not look after them, where that ended nothing; nil: it could.
	accessFailure error
}

// isAccessAwaited says whether a pass ended since another revision waits for its credentials.
func isAccessAwaited(f *facts, said verdict) bool {
	return said.condition == kubermaticv1.ConditionAccessReady && !f.pass.Decision.IsApplied()
}

// withhold takes rights away that the platform does not list any more, and ends credentials that are to be made
// anew, whatever becomes of the pass.
func (r *Reconciler) withhold(ctx context.Context, f *facts) loop.Outcome {
	if r.Access == nil {
		return nil
	}
	rotateAt := f.installation.Annotations[kubermaticv1.AnnotationRotateAt]
	if err := r.Access.Withhold(ctx, client.ObjectKeyFromObject(f.installation), rotateAt); err != nil {
		return failed(err)
	}
	return nil
}

// access has the credentials for the hub before anything is on record that needs them. A revision that is
// applied already does not wait: accessMissing tells of what it lacks.
func (r *Reconciler) access(ctx context.Context, f *facts) loop.Outcome {
	decision, record := f.pass.Decision, f.pass.Record()
	if decision.IsRecorded() || decision.FromRecord {
		err := r.keepAccess(ctx, f, record.Access, f.ofRecord())
		if decision.IsApplied() {
			f.accessFailure = err
			return nil
		}
		return cmp.Or(failedOrNil(err), f.accessMissing())
	}
	wanted := f.choice.Version.Template.Access
	if taken := takenByManifest(f, wanted); taken != nil {
		return taken
	}
	err := r.keepAccess(ctx, f, wanted, askedBy{addonOf(f.installation), f.choice.Core})
	return cmp.Or(failedOrNil(err), f.accessMissing())
}

func failedOrNil(err error) loop.Outcome {
	if err == nil {
		return nil
	}
	return failed(err)
}

// takenByManifest ends the pass where the add-on has a Secret of its own of the name of one with a credential.
func takenByManifest(f *facts, wanted []kubermaticv1.Access) loop.Outcome {
	for _, object := range f.pass.Objects {
		isSecret := object.GetAPIVersion() == "v1" && object.GetKind() == "Secret"
		if !isSecret || object.GetNamespace() != f.installation.Spec.TargetNamespace {
			continue
		}
		for _, one := range wanted {
			if object.GetName() == rights.SecretName(f.installation.Name, one.Name) {
				return loop.Stalled{
					Condition: kubermaticv1.ConditionRendered, Reason: kubermaticv1.ReasonRenderFailed,
					Message: fmt.Sprintf("Secret %q of the add-on has the name of the one for access %q: give either another name",
						object.GetName(), one.Name),
				}
			}
		}
	}
	return nil
}

// maintainAccess keeps the credentials on record, but for those that the pass looked after already, as
// another version would have them; where the platform refuses them to that, what runs keeps its own. How
// they stand ends nothing here: accessMissing tells.
func (r *Reconciler) maintainAccess(ctx context.Context, f *facts) loop.Outcome {
	if record := f.pass.Record(); record != nil {
		f.keepToRecord()
		f.accessFailure = errors.Join(f.accessFailure, r.keepAccess(ctx, f, f.unattended(record.Access), f.ofRecord()))
	}
	return nil
}

// keepToRecord has the user cluster get nothing that only another version asks for, and forgets what that was
// refused under names that are on record.
func (f *facts) keepToRecord() {
	isOnRecord := func(name string) bool { return hasAccess(f.pass.Record().Access, name) }
	var standings []access.Standing
	var keeping []installer.Kept
	for _, one := range f.standings {
		isRefused := one.Problem != nil && one.Problem.Reason == kubermaticv1.ReasonRightsRefused
		if isRefused && isOnRecord(one.Name) {
			continue
		}
		standings = append(standings, one)
		for _, kept := range f.pass.Keeping {
			if kept.Name == one.Secret && isOnRecord(one.Name) {
				keeping = append(keeping, kept)
			}
		}
	}
	f.standings, f.pass.Keeping = standings, keeping
}

// unattended are those whose names the pass did not look after yet.
func (f *facts) unattended(all []kubermaticv1.Access) []kubermaticv1.Access {
	return slices.DeleteFunc(slices.Clone(all), func(one kubermaticv1.Access) bool {
		return slices.ContainsFunc(f.standings, func(standing access.Standing) bool { return standing.Name == one.Name })
	})
}

func hasAccess(all []kubermaticv1.Access, name string) bool {
	return slices.ContainsFunc(all, func(one kubermaticv1.Access) bool { return one.Name == name })
}

// keepAccess makes, puts back and renews credentials, and has them kept in the user cluster. Where one
// failed, it looks after the others nevertheless.
func (r *Reconciler) keepAccess(ctx context.Context, f *facts, asked []kubermaticv1.Access, by askedBy) error {
	if len(asked) == 0 {
		return nil
	}
	if r.Access == nil {
		f.standings = append(f.standings, accessUnknown(f.installation.Name, asked)...)
		return nil
	}
	holder, err := r.holder(ctx, f, by)
	if err != nil {
		return err
	}
	standings, err := r.Access.Keep(ctx, holder, asked, &f.memory.access, f.pass.Now)
	f.standings = append(f.standings, standings...)
	for at, standing := range standings {
		if !standing.Usable {
			continue
		}
		f.pass.Keeping = append(f.pass.Keeping, installer.Kept{
			Name: standing.Secret, Digest: standing.Digest,
			Content: func(ctx context.Context) (map[string][]byte, string, error) {
				return r.Access.Content(ctx, holder, asked[at])
			},
		})
	}
	if err != nil {
		return fmt.Errorf("looking after credentials for the hub: %w", err)
	}
	return nil
}

// accessUnknown is how credentials stand where the platform gives out none.
func accessUnknown(installation string, asked []kubermaticv1.Access) []access.Standing {
	standings := make([]access.Standing, len(asked))
	for at, one := range asked {
		standings[at] = access.Standing{
			Name: one.Name, Type: rights.TypeOf(one), Secret: rights.SecretName(installation, one.Name), Problem: access.WithoutHub(),
		}
	}
	return standings
}

// askedBy is what asks for credentials: which add-on, and whether a Core catalogue has it.
type askedBy struct {
	addon  string
	isCore bool
}

// ofRecord is what asked for the credentials on record.
func (f *facts) ofRecord() askedBy {
	by := askedBy{addon: addonOf(f.installation)}
	if record := f.pass.Record(); record != nil {
		by = askedBy{record.Addon, record.Core}
	}
	return by
}

// holder is the installation as the holder of credentials. What was asked for by a Core catalogue is no more
// than others are given once no Core catalogue has the add-on.
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
		Cluster: f.cluster.Ref, ClusterOwner: f.cluster.Owner, Owner: f.pass.Owner, Installation: f.installation.Name,
		Addon: by.addon, IsShared: isShared, Core: by.isCore,
		RotateAt: f.installation.Annotations[kubermaticv1.AnnotationRotateAt], ReconcileAt: f.pass.Asked.ReconcileAt,
	}, nil
}

// worstAccess is the first credential that can't be used or, without one, the first that has a problem;
// nil where all are as they should be.
func (f *facts) worstAccess() (worst *access.Standing) {
	for at := range f.standings {
		one := &f.standings[at]
		if one.Problem == nil {
			continue
		}
		if worst == nil || worst.Usable && !one.Usable {
			worst = one
		}
	}
	return worst
}

// accessMissing ends the pass where a credential can't be used; nil where all can.
func (f *facts) accessMissing() loop.Outcome {
	worst := f.worstAccess()
	if worst == nil || worst.Usable {
		return nil
	}
	condition, problem, recheck := kubermaticv1.ConditionAccessReady, worst.Problem, f.nextAccess()
	if problem.IsLasting {
		return loop.Stalled{Condition: condition, Reason: problem.Reason, Message: problem.Message, Recheck: recheck}
	}
	return loop.Waiting{Condition: condition, Reason: problem.Reason, Message: problem.Message, Recheck: recheck}
}

// accessMissing reports a missing credential at the end of a reconciliation, after all that needs none.
// What is installed is compared again as if none were missing.
func (r *Reconciler) accessMissing(ctx context.Context, f *facts) loop.Outcome {
	if f.accessFailure != nil {
		return failed(f.accessFailure)
	}
	return earlier(f.accessMissing(), restUntilSurvey(ctx, f))
}

// nextAccess is how long it takes until credentials are looked at again; 0: that is not known.
func (f *facts) nextAccess() (next time.Duration) {
	for _, one := range f.standings {
		if one.Next.IsZero() {
			continue
		}
		left := max(one.Next.Sub(f.pass.Now), time.Second)
		if next == 0 || left < next {
			next = left
		}
	}
	return next
}
