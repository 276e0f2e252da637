package installer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/helmrelease"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
	"github.com/trellis-addons/trellis/pkg/install/removal"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

const (
	// removalRecheck is the interval of a removal that does not wait for objects. Objects being deleted are listed
	// after firstRecheck, and at growing intervals while none is gone, up to slowestRemovalRecheck. After
	// removalBlocked the message says that the removal is blocked.
	removalRecheck        = 300 * time.Millisecond
	slowestRemovalRecheck = 3 * time.Second
	removalBlocked        = time.Minute
	// namespaceWait is how long a removal waits for kinds that can't be listed; then their namespace stays.
	namespaceWait = 5 * time.Minute
)

// RemoveObjects continues the removal as far as possible now. It leaves namespaces in which hooks have to run after
// everything else is removed.
func (p *Run) RemoveObjects(ctx context.Context) *loop.Outcome {
	defer p.installer.handovers.begin(p.Cluster)()
	objects, waits, err := p.removable(ctx)
	if err != nil {
		return Failed(err)
	}
	var outcome *loop.Outcome
	if p.deletesWithHooks(hooks.ActionDelete.Post()) {
		outcome = p.removeInventory(ctx, slices.DeleteFunc(objects, isNamespaceEntry))
	} else {
		outcome = p.removeWithNamespace(ctx, objects)
	}
	if outcome == nil && waits != "" && p.removedFor() < removalBlocked {
		return waitToRemove(fmt.Sprintf("installation %q is removed first: both have cluster-scoped objects", waits))
	}
	return outcome
}

// RemoveNamespaces removes the namespaces that were left for hooks.
func (p *Run) RemoveNamespaces(ctx context.Context) *loop.Outcome {
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

// removeWithNamespace removes an inventory. If no other installation uses its namespace, it also removes a namespace
// that a previous one of them created. Of installations removed at the same time, the last by name waits for the
// others, as long as a removal may take: otherwise each would see another one, and none would remove the namespace.
func (p *Run) removeWithNamespace(ctx context.Context, inventory ownership.Inventory) *loop.Outcome {
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
			return p.remoteFailed(v1.ConditionReady, err)
		}
		if inherited != nil {
			inventory = append(inventory, *inherited)
		}
	}
	outcome := p.removeInventory(ctx, inventory)
	if outcome == nil && p.isLastToGo(sharing) && p.removedFor() < removalBlocked {
		return waitToRemove(fmt.Sprintf("installation %q is removed first: both have namespace %q", sharing[0].Name, target))
	}
	return outcome
}

// isLastToGo says whether all installations that share the namespace are being removed, and this one is the last by
// name.
func (p *Run) isLastToGo(sharing []Other) bool {
	return len(sharing) > 0 && !slices.ContainsFunc(sharing, func(other Other) bool {
		return !other.Deleted || other.Name > p.Owner.Installation
	})
}

func (p *Run) removeInventory(ctx context.Context, inventory ownership.Inventory) *loop.Outcome {
	record := p.Record()
	users, err := p.usersOf(ctx, namesOfNamespaces(inventory)...)
	if err != nil {
		return Failed(err)
	}
	var targeted []string // they stay, even if they are empty
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
		Spared:         slices.Concat(spared, p.secretUIDs()),
		AwaitKinds:     p.removedFor() < namespaceWait, Explain: p.removedFor() > removalBlocked,
		All: slices.Concat(onRecord(record), record.Shared), Kept: p.reportKept, Marked: marked,
	})
	report()
	if err != nil {
		return p.remoteFailed(v1.ConditionReady, err)
	}
	if len(left) == 0 {
		return nil
	}
	return p.removing(left, blocked)
}

// removedFor is the time since the removal was requested. The absolute difference counts: a slow clock prolongs no
// wait.
func (p *Run) removedFor() time.Duration { return p.Now.Sub(p.Asked.RemovedSince).Abs() }

func namesOfNamespaces(inventory ownership.Inventory) (names []string) {
	for _, entry := range inventory {
		if isNamespaceEntry(entry) {
			names = append(names, entry.Name)
		}
	}
	return names
}

// usersOf are the other installations that have one of these namespaces as their target, except for those that never
// applied anything: these are removed without a call to the user cluster, and would leave a namespace behind. A status
// may be outdated, so the record decides; an unreadable one may have objects.
func (p *Run) usersOf(ctx context.Context, namespaces ...string) (users []Other, err error) {
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

// awaitRemovals makes a first rollout wait while an installation with the same target namespace is being removed by a
// reconciliation that may not know of this one: the namespace could be removed with newly written objects.
func (p *Run) awaitRemovals(ctx context.Context) *loop.Outcome {
	if p.Record().From != "" || p.Asked.TargetNamespace == "" || !p.installer.handovers.underWay(p.Cluster) {
		return nil
	}
	others, err := p.Seed.Others(ctx)
	if err != nil {
		return Failed(err)
	}
	for _, other := range others {
		if other.Leaving && other.TargetNamespace == p.Asked.TargetNamespace {
			return waitToApply(v1.ReasonWaitingForStage, fmt.Sprintf("installation %q with the same namespace %q is just being removed",
				other.Name, other.TargetNamespace), removalRecheck)
		}
	}
	return nil
}

// reportKept reports once that a namespace which was created for add-ons stays.
func (p *Run) reportKept(namespace, why string) {
	if !p.State.isNewlyKept(ownership.Key{Kind: ownership.NamespaceGK.Kind, Name: namespace}) {
		return
	}
	p.report(Event{Reason: v1.EventNamespaceKept, Action: "Remove"}, "namespace %q of the user cluster stays: %s",
		namespace, text.Message(why))
}

// marked returns a function that notes objects which stay because of a mark in the user cluster, and one that reports
// new ones. In a cluster that is being deleted nothing stays: tenants must not leave behind objects that cost the
// platform outside of it.
func (p *Run) marked(action string) (hear func(ownership.Key), report func()) {
	var kept []string
	report = func() {
		if len(kept) > 0 {
			p.report(Event{Reason: v1.EventObjectsKept, Action: action}, "no longer part of the installation, but left in the user cluster, since "+
				"they have annotation %s: keep, %s: orphan, or %s, there: %s", ownership.HelmPolicyAnnotation, v1.AnnotationOnDelete,
				ownership.OCMOrphanAnnotation, text.Names(kept, maxNamed))
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

// onRecord are all objects that the user cluster may have by a record: those applied, and those superseded and not
// pruned yet. The inventory of an unfinished rollout has planned objects without UIDs.
func onRecord(record *revision.Record) ownership.Inventory {
	return slices.Concat(record.Superseded, record.Inventory)
}

func (p *Run) removing(left ownership.Inventory, blocked []calls.Note) *loop.Outcome {
	p.State.countRemoval(len(left))
	outcome := waitToRemove(fmt.Sprintf("not removed yet: %s, next %s", text.Count(len(left), "object"), left[len(left)-1].Key))
	outcome.Recheck = backoff.After(p.State.removalRuns, firstRecheck, slowestRemovalRecheck)
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
func (p *Run) RemoveRelease(ctx context.Context) *loop.Outcome {
	for _, helm := range []*helmrelease.Release{p.Record().Helm, p.Record().Previous} {
		if helm == nil {
			continue
		}
		if err := helmrelease.Remove(ctx, p.Connection.Secrets.Secrets(helm.Namespace), helm.Name, p.Owner); err != nil {
			return p.remoteFailed(v1.ConditionReady, err)
		}
	}
	return nil
}
