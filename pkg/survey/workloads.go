package survey

import (
	"context"
	"fmt"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

const (
	// wellFor is how long a list of workloads counts as a read of each, or a wellShare-th of the interval if that is less.
	wellFor   = 10 * time.Second
	wellShare = 6
	// maxWorkloads is how many workloads of a kind are known to be well.
	maxWorkloads = 20_000
	// wholePage is the page size of lists of whole objects.
	wholePage = 100
)

// workloadKinds are assessed from the object alone, and never finish: one list under our label tells of all owners.
var workloadKinds = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}:  true,
	{Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "apps", Kind: "DaemonSet"}:   true,
	{Group: "apps", Kind: "ReplicaSet"}:  true,
	{Kind: "ReplicationController"}:      true,
}

// Assess does what the function Assess does, for an installation that was healthy when last looked at. Workloads are looked for in one list
// a kind, which the installations of a cluster that look at about the same time share; those that are not well in it are read.
func (s *Survey) Assess(ctx context.Context, target calls.Target, owner ownership.Owner, inventory ownership.Inventory) (Health, error) {
	return (&assessor{owner: owner, target: target, survey: s}).all(ctx, inventory)
}

// well are the workloads of a kind that were as they should be when a list was made.
type well struct {
	turn turn
	made time.Time
	uids map[types.UID]bool
	// failed says that the API server misbehaved when the list was made: it is not asked again before its time.
	failed error
}

// withoutWell leaves out the entries of one kind that a list of a moment ago calls well.
func (s *Survey) withoutWell(ctx context.Context, target calls.Target, where calls.Resource, entries batch) (rest batch, err error) {
	kept := s.wellOf(where.GroupResource())
	if err := kept.turn.take(ctx); err != nil {
		return nil, err
	}
	defer kept.turn.leave()
	if now := s.now(); kept.made.IsZero() || now.Sub(kept.made) > min(wellFor, s.interval/wellShare) {
		uids, err := listWell(ctx, target, where)
		if err != nil && !calls.IsMisbehaviour(err) {
			return nil, fmt.Errorf("listing the %s of add-ons: %w", where.Resource, err)
		}
		kept.made, kept.uids, kept.failed = now, uids, err
	}
	if kept.failed != nil {
		return nil, fmt.Errorf("listing the %s of add-ons: %w", where.Resource, kept.failed)
	}
	for _, entry := range entries {
		if !kept.uids[entry.UID] {
			rest = append(rest, entry)
		}
	}
	return rest, nil
}

func (s *Survey) wellOf(kind schema.GroupResource) *well {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.well[kind] == nil {
		s.well[kind] = &well{turn: newTurn()}
	}
	return s.well[kind]
}

func listWell(ctx context.Context, target calls.Target, where calls.Resource) (map[types.UID]bool, error) {
	uids := map[types.UID]bool{}
	client := target.Dynamic.Resource(where.GroupVersionResource)
	err := calls.EachPage(ctx, kubermaticv1.LabelInstallation, func(ctx context.Context, options metav1.ListOptions) (calls.Page, error) {
		options.Limit = wholePage
		page, err := client.List(ctx, options)
		if err != nil {
			return calls.Page{}, err
		}
		for i := range page.Items {
			live := &page.Items[i]
			if ctx.Err() != nil {
				return calls.Page{}, ctx.Err()
			}
			if result, err := status.Compute(live); err == nil && result.Status == status.CurrentStatus && calls.IsUID(live.GetUID()) {
				uids[live.GetUID()] = true
			}
		}
		if len(uids) > maxWorkloads {
			return calls.Page{}, errKeptTooMuch()
		}
		return calls.Page{Items: len(page.Items), Next: page.GetContinue()}, nil
	})
	if err != nil {
		return nil, err
	}
	return uids, nil
}
