package installer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/pullsecret"
)

// CopyPullSecret has the platform's pull Secret in the namespaces of what is applied, and of what is
// still to be pruned. It calls the user cluster where the Secret or the namespaces changed, or where
// a comparison that this pass made found another Secret than the one that was written.
func (p *Pass) CopyPullSecret(ctx context.Context) *Stop {
	if p.Record().Unreadable() != nil { // what is not known needs nothing new
		return nil
	}
	return p.holdCopies(ctx, func(held *pullsecret.Held) *Stop {
		use, known := held.Known(p.Owner.Installation, p.Record().Revision)
		if !known {
			record, objects, err := p.recordedObjects(ctx)
			if err != nil {
				return p.doubted(err)
			}
			use = held.Roll(p.Owner.Installation, p.pulling(objects, record.Hooks))
		}
		if len(p.Record().Superseded) == 0 { // else pods of the revision before may still run
			use.Former = nil
		}
		held.Note(p.Owner.Installation, use)
		drifted, err := p.driftedCopies(ctx, held)
		if err != nil {
			return p.secretsFailed(AboutHealth, copiesOfPull, err)
		}
		notes, stop := p.syncCopies(ctx, held, drifted)
		if stop != nil {
			return stop
		}
		return p.uncopied(inTheWay(notes, use))
	})
}

// DropFormer removes copies that only the revision before needed, once what it had is pruned.
func (p *Pass) DropFormer(ctx context.Context) *Stop {
	if p.Record().Unreadable() != nil || len(p.Record().Superseded) > 0 {
		return nil
	}
	return p.holdCopies(ctx, func(held *pullsecret.Held) *Stop {
		use, known := held.Known(p.Owner.Installation, p.Record().Revision)
		if !known || len(use.Former) == 0 {
			return nil
		}
		use.Former = nil
		held.Note(p.Owner.Installation, use)
		notes, stop := p.syncCopies(ctx, held, nil)
		if stop != nil {
			return stop
		}
		return p.uncopied(inTheWay(notes, use))
	})
}

// beforeWorkloads has Secrets and runs hooks while a revision is applied. Where hooks come first,
// they may make a namespace that is missing.
func (p *Pass) beforeWorkloads(ctx context.Context) *Stop {
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

// secretsBeforeHooks has copies of the pull Secret, and kept Secrets, before hooks and workloads. It
// gives notes about what is in the way.
func (p *Pass) secretsBeforeHooks(ctx context.Context) ([]calls.Note, *Stop) {
	notes, stop := p.copyBeforeHooks(ctx)
	if stop != nil {
		return notes, stop
	}
	kept, stop := p.keepSecrets(ctx, nil)
	return slices.Concat(notes, kept), stop
}

// copyBeforeHooks is CopyPullSecret while a revision is applied, before its hooks and workloads. It
// gives notes about what is in the way.
func (p *Pass) copyBeforeHooks(ctx context.Context) (notes []calls.Note, stop *Stop) {
	stop = p.holdCopies(ctx, func(held *pullsecret.Held) (stop *Stop) {
		use := held.Roll(p.Owner.Installation, p.pulling(p.Objects, p.Record().Hooks))
		held.Note(p.Owner.Installation, use)
		notes, stop = p.syncCopies(ctx, held, nil)
		notes = inTheWay(notes, use)
		return stop
	})
	return notes, stop
}

// copyForDeletionHooks writes what is not there yet, as where a hook just made the namespace. What
// can't be written does not keep anything from being removed.
func (p *Pass) copyForDeletionHooks(ctx context.Context) *Stop {
	return p.holdCopies(ctx, func(held *pullsecret.Held) *Stop {
		if _, known := held.Known(p.Owner.Installation, p.Record().Revision); !known {
			return nil
		}
		_, stop := p.syncCopies(ctx, held, nil)
		return stop
	})
}

// DropPullSecret removes the copies that the installation was the last to need.
func (p *Pass) DropPullSecret(ctx context.Context) *Stop {
	return p.holdCopies(ctx, func(held *pullsecret.Held) *Stop {
		held.Note(p.Owner.Installation, pullsecret.Use{})
		_, stop := p.syncCopies(ctx, held, nil) // nothing is written for it
		return stop
	})
}

// holdCopies does something with the copies of the user cluster, of which one pass at a time does.
func (p *Pass) holdCopies(ctx context.Context, do func(*pullsecret.Held) *Stop) *Stop {
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
func (p *Pass) pulling(objects []*unstructured.Unstructured, hooked []hooks.Hook) pullsecret.Use {
	all, pull := slices.Clone(objects), p.installer.Pull
	for _, hook := range hooked {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(hook.Object); err != nil {
			continue // it can't be run either
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

// inTheWay are the notes but those about namespaces that hooks make and remove, or that go: copies
// there are written by a later pass, if there will be one.
func inTheWay(notes []calls.Note, use pullsecret.Use) []calls.Note {
	return slices.DeleteFunc(notes, func(note calls.Note) bool {
		awaited := note.Reason == v1.ReasonNamespaceMissing || note.Reason == v1.ReasonNamespaceTerminating
		return awaited && !use.IsFirm(note.Key.Namespace)
	})
}

// driftedCopies joins a comparison that this pass made: the same list has them.
func (p *Pass) driftedCopies(ctx context.Context, held *pullsecret.Held) ([]ownership.Key, error) {
	if p.Compared == nil || p.Decision.ShowsDrift {
		return nil, nil
	}
	drift, err := p.view().survey.Load().Drifted(ctx, p.target(), held.OwnerOf(), held.Of(p.Owner.Installation))
	return keysOf(drift), err
}

// syncCopies removes and writes what differs. What will be written is on record before, and what
// was removed until after. Notes are about copies that could not be written.
func (p *Pass) syncCopies(ctx context.Context, held *pullsecret.Held, drifted []ownership.Key) (notes []calls.Note, stop *Stop) {
	original, err := held.Original(ctx, p.Now)
	if err != nil {
		return nil, Failed(err)
	}
	p.copiesDue = original.Until
	plan := held.Plan(p.Owner.Installation, original, drifted)
	if outgrown, err := held.Outgrown(plan); err != nil || outgrown {
		held.Doubt() // nothing of it is on record
		return nil, p.outgrown(err)
	}
	if err := p.dropCopies(ctx, held, plan.Drop); err != nil {
		held.Doubt() // they are on record
		return nil, p.secretsFailed(AboutApply, copiesOfPull, err)
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

func (p *Pass) outgrown(err error) *Stop {
	if err != nil {
		return Failed(err)
	}
	return &Stop{
		About: AboutApply, Reason: v1.ReasonFailed, Recheck: p.copyRecheck(),
		Message: fmt.Sprintf("the record of copies of the pull Secret in this cluster would have more than %d bytes: "+
			"the add-ons have pods in too many namespaces", pullsecret.MaxRecord),
	}
}

// uncopied waits, ever longer, for what notes say; nil where there are none.
func (p *Pass) uncopied(notes []calls.Note) *Stop {
	if len(notes) == 0 {
		return nil
	}
	return &Stop{About: AboutApply, Reason: notes[0].Reason, Cause: notes[0].Cause, Message: TextOf(notes), Recheck: p.copyRecheck()}
}

func (p *Pass) copyRecheck() time.Duration {
	return backoff.After(p.Refusals+1, RefusedRecheck, SlowestRetry)
}

// goesAlong are the UIDs of copies that don't keep a namespace which is removed.
func (p *Pass) goesAlong(ctx context.Context) (spared []types.UID, stop *Stop) {
	stop = p.holdCopies(ctx, func(held *pullsecret.Held) *Stop {
		spared = held.Alone(p.Owner.Installation)
		return nil
	})
	return spared, stop
}
