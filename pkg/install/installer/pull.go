package installer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
	"github.com/trellis-addons/trellis/pkg/install/pullsecret"
)

// CopyPullSecret keeps copies of the platform's pull Secret in the namespaces of applied objects, and of objects still
// to be pruned. It calls the user cluster if the Secret or the namespaces changed, or if a comparison in this
// reconciliation found another Secret than the one that was written.
func (p *Run) CopyPullSecret(ctx context.Context) *loop.Outcome {
	if p.Record().Unreadable() != nil { // an unreadable record needs no new copies
		return nil
	}
	return p.holdCopies(ctx, func(held *pullsecret.Held) *loop.Outcome {
		use, known := held.Known(p.Owner.Installation, p.Record().Revision)
		if !known {
			record, objects, err := p.recordedObjects(ctx)
			if err != nil {
				return p.recordUnknown(err)
			}
			use = held.Roll(p.Owner.Installation, p.pulling(objects, record.Hooks))
		}
		if len(p.Record().Superseded) == 0 { // otherwise pods of the previous revision may still run
			use.Previous = nil
		}
		held.Note(p.Owner.Installation, use)
		drifted, err := p.driftedCopies(ctx, held)
		if err != nil {
			return p.secretsFailed(v1.ConditionHealthy, copiesOfPull, err)
		}
		notes, stop := p.syncCopies(ctx, held, drifted)
		if stop != nil {
			return stop
		}
		return p.uncopied(inTheWay(notes, use))
	})
}

// PruneCopies removes copies that only the previous revision needed, once its objects are pruned.
func (p *Run) PruneCopies(ctx context.Context) *loop.Outcome {
	if p.Record().Unreadable() != nil || len(p.Record().Superseded) > 0 {
		return nil
	}
	return p.holdCopies(ctx, func(held *pullsecret.Held) *loop.Outcome {
		use, known := held.Known(p.Owner.Installation, p.Record().Revision)
		if !known || len(use.Previous) == 0 {
			return nil
		}
		use.Previous = nil
		held.Note(p.Owner.Installation, use)
		notes, stop := p.syncCopies(ctx, held, nil)
		if stop != nil {
			return stop
		}
		return p.uncopied(inTheWay(notes, use))
	})
}

// beforeWorkloads writes Secrets and runs hooks while a revision is applied. If hooks run first, they may create a
// missing namespace.
func (p *Run) beforeWorkloads(ctx context.Context) *loop.Outcome {
	event := p.Record().Action.Pre()
	notes, stop := p.secretsBeforeHooks(ctx)
	if stop != nil {
		return stop
	}
	isMissing := func(note calls.Note) bool { return note.Reason == v1.ReasonNamespaceMissing }
	isAwaited := p.Record().HasHooks(event) && slices.ContainsFunc(notes, isMissing)
	if isAwaited {
		notes = slices.DeleteFunc(notes, isMissing)
	}
	if stop := p.uncopied(notes); stop != nil {
		return stop
	}
	if stop := p.runHooks(ctx, event); stop != nil || !isAwaited {
		return stop
	}
	if notes, stop = p.secretsBeforeHooks(ctx); stop != nil {
		return stop
	}
	return p.uncopied(notes)
}

// secretsBeforeHooks writes copies of the pull Secret, and kept Secrets, before hooks and workloads. It returns notes
// about obstacles.
func (p *Run) secretsBeforeHooks(ctx context.Context) ([]calls.Note, *loop.Outcome) {
	notes, stop := p.copyBeforeHooks(ctx)
	if stop != nil {
		return notes, stop
	}
	kept, stop := p.applySecrets(ctx, nil)
	return slices.Concat(notes, kept), stop
}

// copyBeforeHooks is CopyPullSecret while a revision is applied, before its hooks and workloads. It returns notes about
// obstacles.
func (p *Run) copyBeforeHooks(ctx context.Context) (notes []calls.Note, stop *loop.Outcome) {
	stop = p.holdCopies(ctx, func(held *pullsecret.Held) (stop *loop.Outcome) {
		use := held.Roll(p.Owner.Installation, p.pulling(p.Objects, p.Record().Hooks))
		held.Note(p.Owner.Installation, use)
		notes, stop = p.syncCopies(ctx, held, nil)
		notes = inTheWay(notes, use)
		return stop
	})
	return notes, stop
}

// copyForDeletionHooks writes missing copies, such as in a namespace that a hook just created. A failed write does not
// block the removal.
func (p *Run) copyForDeletionHooks(ctx context.Context) *loop.Outcome {
	return p.holdCopies(ctx, func(held *pullsecret.Held) *loop.Outcome {
		if _, known := held.Known(p.Owner.Installation, p.Record().Revision); !known {
			return nil
		}
		_, stop := p.syncCopies(ctx, held, nil)
		return stop
	})
}

// DropPullSecret removes the copies that no other installation needs.
func (p *Run) DropPullSecret(ctx context.Context) *loop.Outcome {
	return p.holdCopies(ctx, func(held *pullsecret.Held) *loop.Outcome {
		held.Note(p.Owner.Installation, pullsecret.Use{})
		_, stop := p.syncCopies(ctx, held, nil) // a removal writes no copies
		return stop
	})
}

// holdCopies calls do with the copies of the user cluster, for one reconciliation at a time.
func (p *Run) holdCopies(ctx context.Context, do func(*pullsecret.Held) *loop.Outcome) *loop.Outcome {
	if p.installer.Pull == nil {
		return nil
	}
	held, err := p.installer.Pull.Hold(ctx, p.Cluster, p.Owner.ClusterUID)
	if err != nil {
		return Failed(err)
	}
	if held == nil {
		return nil
	}
	defer held.Release()
	return do(held)
}

// pulling says in which namespaces objects and hooks of the revision need the Secret.
func (p *Run) pulling(objects []*unstructured.Unstructured, hooked []hooks.Hook) pullsecret.Use {
	all, pull := slices.Clone(objects), p.installer.Pull
	for _, hook := range hooked {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(hook.Object); err != nil {
			continue // it can't run either
		}
		if object.GetNamespace() == "" {
			object.SetNamespace(p.Record().TargetNamespace)
		}
		all = append(all, object)
	}
	use, firm := pullsecret.Use{Revision: p.Record().Revision, Namespaces: pull.Needs(all, pull.Name)}, pull.Needs(objects, pull.Name)
	for _, namespace := range use.Namespaces {
		if !slices.Contains(firm, namespace) {
			use.Hooked = append(use.Hooked, namespace)
		}
	}
	return use
}

// inTheWay are the notes without those about namespaces that hooks create and remove, or that are being removed: a
// later reconciliation writes copies there, if needed.
func inTheWay(notes []calls.Note, use pullsecret.Use) []calls.Note {
	return slices.DeleteFunc(notes, func(note calls.Note) bool {
		awaited := note.Reason == v1.ReasonNamespaceMissing || note.Reason == v1.ReasonNamespaceTerminating
		return awaited && !use.IsFirm(note.Key.Namespace)
	})
}

// driftedCopies uses the list of a comparison that this reconciliation made.
func (p *Run) driftedCopies(ctx context.Context, held *pullsecret.Held) ([]ownership.Key, error) {
	if p.Compared == nil || p.Decision.ShowsDrift {
		return nil, nil
	}
	drift, err := p.view().survey.Load().Drifted(ctx, p.target(), held.OwnerOf(), held.Of(p.Owner.Installation))
	return keysOf(drift), err
}

// syncCopies removes and writes copies that differ. Writes are recorded before they are made, removals after. Notes are
// about copies that could not be written.
func (p *Run) syncCopies(ctx context.Context, held *pullsecret.Held, drifted []ownership.Key) (notes []calls.Note, stop *loop.Outcome) {
	original, err := held.Original(ctx, p.Now)
	if err != nil {
		return nil, Failed(err)
	}
	p.copiesDue = original.Until
	plan := held.Plan(p.Owner.Installation, original, drifted)
	if outgrown, err := held.Outgrown(plan); err != nil || outgrown {
		held.MarkUnknown() // none of it is on record
		return nil, p.outgrown(err)
	}
	if err := p.dropCopies(ctx, held, plan.Drop); err != nil {
		held.MarkUnknown() // they are on record
		return nil, p.secretsFailed(v1.ConditionApplied, copiesOfPull, err)
	}
	for _, at := range plan.Write {
		if one := &held.All[at]; one.Nonce == "" {
			one.Nonce = pullsecret.NewNonce()
			held.Change()
		}
	}
	if err := held.Save(ctx); err != nil {
		return nil, Failed(err)
	}
	return p.putCopies(ctx, held, plan.Write, original)
}

func (p *Run) outgrown(err error) *loop.Outcome {
	if err != nil {
		return Failed(err)
	}
	return waitToApply(v1.ReasonFailed, fmt.Sprintf("the record of copies of the pull Secret in this cluster would have more than %d bytes: "+
		"the add-ons have pods in too many namespaces", pullsecret.MaxRecord), p.copyRecheck())
}

// uncopied waits for the notes' obstacles, for growing intervals; nil without notes.
func (p *Run) uncopied(notes []calls.Note) *loop.Outcome {
	if len(notes) == 0 {
		return nil
	}
	return waitForNotes(notes, p.copyRecheck())
}

func (p *Run) copyRecheck() time.Duration {
	return backoff.After(p.Refusals+1, RefusedRecheck, SlowestRetry)
}

// goesAlong are the UIDs of copies that do not keep a namespace from being removed.
func (p *Run) goesAlong(ctx context.Context) (spared []types.UID, stop *loop.Outcome) {
	stop = p.holdCopies(ctx, func(held *pullsecret.Held) *loop.Outcome {
		spared = held.Alone(p.Owner.Installation)
		return nil
	})
	return spared, stop
}
