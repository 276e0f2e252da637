package installer

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/pullsecret"
)

// CopyPullSecret has the platform's pull Secret in the namespaces of what is applied. It calls the
// user cluster where the Secret or the namespaces changed, or where a comparison that this pass
// made found another Secret than the one that was written.
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
			use.Namespaces = p.pullingNamespaces(objects, record.Hooks)
		}
		use.Former = nil
		held.Note(p.Owner.Installation, use)
		drifted, err := p.driftedCopies(ctx, held)
		if err != nil {
			return p.remoteFailed(AboutHealth, err)
		}
		return p.syncCopies(ctx, held, drifted)
	})
}

// copyBeforeHooks is CopyPullSecret while a revision is applied, before its hooks and workloads.
func (p *Pass) copyBeforeHooks(ctx context.Context) *Stop {
	return p.holdCopies(ctx, func(held *pullsecret.Held) *Stop {
		namespaces := p.pullingNamespaces(p.Objects, p.Record().Hooks)
		held.Note(p.Owner.Installation, held.Roll(p.Owner.Installation, p.Record().Revision, namespaces))
		return p.syncCopies(ctx, held, nil)
	})
}

// DropPullSecret removes the copies that the installation was the last to need.
func (p *Pass) DropPullSecret(ctx context.Context) *Stop {
	return p.holdCopies(ctx, func(held *pullsecret.Held) *Stop {
		held.Note(p.Owner.Installation, pullsecret.Use{})
		return p.syncCopies(ctx, held, nil)
	})
}

// holdCopies does something with the copies of the user cluster, of which one pass at a time does.
func (p *Pass) holdCopies(ctx context.Context, do func(*pullsecret.Held) *Stop) *Stop {
	if p.installer.Pull == nil {
		return nil
	}
	held, err := p.installer.Pull.Hold(ctx, p.Cluster.Name, p.Owner.ClusterUID)
	if err != nil {
		return Failed(err)
	}
	if held == nil {
		return nil
	}
	defer held.Release()
	if held.IsIdle() {
		return nil
	}
	return do(held)
}

// pullingNamespaces are those in which objects and hooks need the Secret.
func (p *Pass) pullingNamespaces(objects []*unstructured.Unstructured, hooked []hooks.Hook) []string {
	all := slices.Clone(objects)
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
	return p.installer.Pull.Needs(all, p.installer.Pull.Name)
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
// was removed until after.
func (p *Pass) syncCopies(ctx context.Context, held *pullsecret.Held, drifted []ownership.Key) *Stop {
	content, digest, err := held.Original(ctx)
	if err != nil {
		return Failed(err)
	}
	plan := held.Plan(p.Owner.Installation, p.installer.Pull.Name, digest, drifted)
	if err := p.dropCopies(ctx, held, plan.Drop); err != nil {
		held.Doubt() // they are on record
		return p.remoteFailed(AboutApply, err)
	}
	for _, at := range plan.Write {
		if one := &held.Copies.Copies[at]; one.Nonce == "" {
			one.Nonce = pullsecret.NewNonce()
			held.Change()
		}
	}
	if err := held.Save(ctx); err != nil {
		return Failed(err)
	}
	notes, err := p.putCopies(ctx, held, plan.Write, pulled{content, digest})
	if saving := held.Save(ctx); saving != nil {
		return Failed(saving)
	}
	if err != nil {
		return p.remoteFailed(AboutApply, err)
	}
	if len(notes) > 0 {
		return &Stop{About: AboutApply, Reason: notes[0].Reason, Message: TextOf(notes), Recheck: RefusedRecheck}
	}
	return nil
}

// goesAlong are the UIDs of copies that don't keep a namespace which is removed.
func (p *Pass) goesAlong(ctx context.Context) (spared []types.UID, stop *Stop) {
	stop = p.holdCopies(ctx, func(held *pullsecret.Held) *Stop {
		spared = held.Alone(p.Owner.Installation)
		return nil
	})
	return spared, stop
}

// takenCopy is told where somebody else has the place of a copy.
func takenCopy(key ownership.Key) *calls.Note {
	return &calls.Note{Key: key, Reason: v1.ReasonObjectExists, Message: fmt.Sprintf(
		"Secret %q in namespace %q exists already and is not our copy of the platform's pull Secret, which has to be there: "+
			"remove it, or give it another name", key.Name, key.Namespace)}
}
