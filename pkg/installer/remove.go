package installer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/removal"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/text"
)

const (
	// removalRecheck is how often a removal that waits for something else than objects is tried
	// again. Objects that go are listed after firstRecheck, and while none goes ever more rarely,
	// up to slowestRemovalRecheck; removalBlocked is when the message says that it hangs.
	removalRecheck        = 300 * time.Millisecond
	slowestRemovalRecheck = 3 * time.Second
	removalBlocked        = time.Minute
	// namespaceWait is how long a removal waits for kinds that can't be listed; then their namespace stays.
	namespaceWait = 5 * time.Minute
)

// RemoveObjects carries the removal as far as it goes now. Namespaces are left where hooks have to
// run once all else is gone.
func (p *Pass) RemoveObjects(ctx context.Context) *Stop {
	defer p.installer.handovers.begin(p.Cluster)()
	objects, waits, err := p.removable(ctx)
	if err != nil {
		return Failed(err)
	}
	var outcome *Stop
	if p.deletesWithHooks(hooks.ActionDelete.Post()) {
		outcome = p.removeInventory(ctx, slices.DeleteFunc(objects, isNamespaceEntry))
	} else {
		outcome = p.removeWithNamespace(ctx, objects)
	}
	if outcome == nil && waits != "" && p.removedFor() < removalBlocked {
		return &Stop{
			About: AboutAll, Reason: v1.ReasonRemoving, Recheck: removalRecheck,
			Message: fmt.Sprintf("installation %q, which is removed too, goes first: both have objects of the whole cluster", waits),
		}
	}
	return outcome
}

// RemoveNamespaces removes the namespaces that were left for hooks.
func (p *Pass) RemoveNamespaces(ctx context.Context) *Stop {
	if len(p.Record().Hooks) == 0 {
		return nil
	}
	defer p.installer.handovers.begin(p.Cluster)()
	namespaces := slices.DeleteFunc(onRecord(p.Record()), func(entry ownership.Entry) bool { return !isNamespaceEntry(entry) })
	return p.removeWithNamespace(ctx, namespaces)
}

func isNamespaceEntry(entry ownership.Entry) bool {
	return entry.GroupKind() == (schema.GroupKind{Kind: "Namespace"})
}

// removeWithNamespace removes an inventory and, where the installation is the last one that asked
// for its namespace, the namespace too, if a former one of them made it. Of those that are removed
// at the same time the last by name waits for the others, as long as a removal may take: each would
// see another one otherwise, and none take the namespace.
func (p *Pass) removeWithNamespace(ctx context.Context, inventory ownership.Inventory) *Stop {
	if !p.Asked.CreateNamespace {
		return p.removeInventory(ctx, inventory)
	}
	target := p.Record().TargetNamespace
	sharing, err := p.usersOf(ctx, target)
	if err != nil {
		return Failed(err)
	}
	if len(sharing) == 0 {
		inherited, err := removal.Inherited(ctx, p.target(), p.Owner, target, p.nameOf())
		if err != nil {
			return p.remoteFailed(AboutAll, err)
		}
		if inherited != nil {
			inventory = append(inventory, *inherited)
		}
	}
	outcome := p.removeInventory(ctx, inventory)
	if outcome == nil && p.isLastToGo(sharing) && p.removedFor() < removalBlocked {
		return &Stop{
			About: AboutAll, Reason: v1.ReasonRemoving, Recheck: removalRecheck,
			Message: fmt.Sprintf("installation %q, which is removed too, goes first: both have namespace %q", sharing[0].Name, target),
		}
	}
	return outcome
}

// isLastToGo says whether all that share a namespace with an installation are being removed, and it
// is the last by name.
func (p *Pass) isLastToGo(sharing []Other) bool {
	return len(sharing) > 0 && !slices.ContainsFunc(sharing, func(other Other) bool {
		return !other.Deleted || other.Name > p.Owner.Installation
	})
}

func (p *Pass) removeInventory(ctx context.Context, inventory ownership.Inventory) *Stop {
	record := p.Record()
	users, err := p.usersOf(ctx, namesOfNamespaces(inventory)...)
	if err != nil {
		return Failed(err)
	}
	var targeted []string // they stay, even if nothing is in them
	for _, user := range users {
		targeted = append(targeted, user.TargetNamespace)
	}
	spared, stop := p.goesAlong(ctx)
	if stop != nil {
		return stop
	}
	marked, report := p.marked("Remove")
	left, blocked, err := removal.Remove(ctx, p.target(), inventory, removal.RemoveOptions{
		Owner: p.Owner, Heir: p.heir(), CRDs: record.CRDs.Remove, LeftBy: record.LeftBy(), Namespace: record.TargetNamespace,
		KeepNamespaces: targeted,
		Spared:         slices.Concat(spared, p.keptUIDs()),
		AwaitKinds:     p.removedFor() < namespaceWait, Explain: p.removedFor() > removalBlocked,
		All: slices.Concat(onRecord(record), record.Shared), Kept: p.reportKept, Marked: marked,
	})
	report()
	if err != nil {
		return p.remoteFailed(AboutAll, err)
	}
	if len(left) == 0 {
		return nil
	}
	return p.removing(left, blocked)
}

// removedFor is how long ago the removal was asked for. The distance counts: a clock that is behind makes no wait longer.
func (p *Pass) removedFor() time.Duration { return p.Now.Sub(p.Asked.RemovedSince).Abs() }

func namesOfNamespaces(inventory ownership.Inventory) (names []string) {
	for _, entry := range inventory {
		if isNamespaceEntry(entry) {
			names = append(names, entry.Name)
		}
	}
	return names
}

// usersOf are the other installations with one of these namespaces as their target, but for those that never applied anything:
// these go without a look at the user cluster, and would leave behind a namespace that stayed for them. A status may be behind, so
// the record decides; one that can't be read may have objects.
func (p *Pass) usersOf(ctx context.Context, namespaces ...string) (users []Other, err error) {
	others, err := p.Seed.Others(ctx)
	if err != nil {
		return nil, err
	}
	for _, other := range others {
		if !slices.Contains(namespaces, other.TargetNamespace) {
			continue
		}
		if other.Idle {
			record, err := p.recordOf(ctx, other)
			if _, damaged := errors.AsType[*revision.DamagedError](err); err != nil && !damaged {
				return nil, err
			}
			if err == nil && record == nil {
				continue
			}
		}
		users = append(users, other)
	}
	return users, nil
}

// awaitRemovals has a first rollout wait for a pass that is just removing an installation with the same target namespace, and may
// not know of this one: the namespace could go with it, and what is written meanwhile too.
func (p *Pass) awaitRemovals(ctx context.Context) *Stop {
	if p.Record().From != "" || p.Asked.TargetNamespace == "" || !p.installer.handovers.underWay(p.Cluster) {
		return nil
	}
	others, err := p.Seed.Others(ctx)
	if err != nil {
		return Failed(err)
	}
	for _, other := range others {
		if other.Leaving && other.TargetNamespace == p.Asked.TargetNamespace {
			return &Stop{
				About: AboutApply, Reason: v1.ReasonWaitingForStage, Recheck: removalRecheck,
				Message: fmt.Sprintf("installation %q with the same namespace %q is just being removed", other.Name, other.TargetNamespace),
			}
		}
	}
	return nil
}

// reportKept reports once a namespace that was made for add-ons and stays.
func (p *Pass) reportKept(namespace, why string) {
	if !p.State.isNewlyKept(ownership.Key{Kind: ownership.NamespaceGK.Kind, Name: namespace}) {
		return
	}
	p.report(Event{Reason: v1.EventNamespaceKept, Action: "Remove"}, "namespace %q of the user cluster stays: %s",
		namespace, text.Message(why))
}

// marked gives a function that notes objects which stay since they are marked in the user cluster, and one that reports
// those that are new. Nothing is kept in a cluster that goes: no tenant is to leave what costs the platform something outside of it.
func (p *Pass) marked(action string) (hear func(ownership.Key), report func()) {
	var kept []string
	report = func() {
		if len(kept) > 0 {
			p.report(Event{Reason: v1.EventObjectsKept, Action: action}, "no longer part of the installation, and left in place since "+
				"they are marked in the user cluster with %s: keep, or %s: orphan: %s", ownership.HelmPolicyAnnotation, v1.AnnotationOnDelete,
				text.Names(kept, maxNamed))
		}
	}
	if p.Asked.ClusterGoes {
		return nil, report
	}
	return func(key ownership.Key) {
		if p.State.isNewlyKept(key) {
			kept = append(kept, calls.CutText(key.String()))
		}
	}, report
}

// onRecord is everything that a record says the user cluster may hold: what was applied, what was
// superseded and not yet pruned. The inventory of a rollout that never came to its end holds what
// was planned, without UIDs.
func onRecord(record *revision.Record) ownership.Inventory {
	return slices.Concat(record.Superseded, record.Inventory)
}

func (p *Pass) removing(left ownership.Inventory, blocked []calls.Note) *Stop {
	p.State.countRemoval(len(left))
	outcome := &Stop{
		About: AboutAll, Reason: v1.ReasonRemoving,
		Message: fmt.Sprintf("still to go: %s, next %s", text.Count(len(left), "object"), left[len(left)-1].Key),
		Recheck: backoff.After(p.State.removalPasses, firstRecheck, slowestRemovalRecheck),
	}
	if len(blocked) > 0 && p.removedFor() > removalBlocked {
		outcome.Reason, outcome.Message, outcome.Cause = v1.ReasonRemovalBlocked, TextOf(blocked), blocked[0].Cause
		outcome.Recheck = SlowestRecheck
	}
	if hasReason(blocked, removal.ReasonUnlisted) {
		outcome.Recheck = SlowestRecheck
	}
	return outcome
}

// RemoveRelease removes the release's Secrets.
func (p *Pass) RemoveRelease(ctx context.Context) *Stop {
	for _, helm := range []*helmrelease.Release{p.Record().Helm, p.Record().Former} {
		if helm == nil {
			continue
		}
		if err := helmrelease.Remove(ctx, p.Connection.Secrets.Secrets(helm.Namespace), helm.Name, p.Owner); err != nil {
			return p.remoteFailed(AboutAll, err)
		}
	}
	return nil
}
