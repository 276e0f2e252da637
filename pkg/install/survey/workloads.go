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
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
)

const (
	// A list of workloads is valid for healthyFor, or a healthyShare-th of a shorter interval.
	healthyFor   = 10 * time.Second
	healthyShare = 6
	maxWorkloads = 20_000
	wholePage    = 100
)

var (
	deploymentGK = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	daemonSetGK  = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
)

// workloadKinds are assessed from the object alone, and never finish.
var workloadKinds = map[schema.GroupKind]bool{
	deploymentGK:                         true,
	{Group: "apps", Kind: "StatefulSet"}: true,
	daemonSetGK:                          true,
	{Group: "apps", Kind: "ReplicaSet"}:  true,
	{Kind: "ReplicationController"}:      true,
}

type healthyList struct {
	turn   turn
	made   time.Time
	uids   map[types.UID]bool
	failed error
}

func (s *Survey) withoutHealthy(ctx context.Context, target calls.Target, where calls.Resource, entries batch) (rest batch, err error) {
	kept := s.healthyOf(where.GroupResource())
	if err := kept.turn.acquire(ctx); err != nil {
		return nil, err
	}
	defer kept.turn.release()
	if now := s.now(); kept.made.IsZero() || now.Sub(kept.made) > min(healthyFor, s.interval/healthyShare) {
		uids, err := listHealthy(ctx, target, where)
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

func (s *Survey) healthyOf(kind schema.GroupResource) *healthyList {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.healthyList[kind] == nil {
		s.healthyList[kind] = &healthyList{turn: newTurn()}
	}
	return s.healthyList[kind]
}

func listHealthy(ctx context.Context, target calls.Target, where calls.Resource) (map[types.UID]bool, error) {
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
			if result, err := compute(live); err == nil && result.Status == status.CurrentStatus && calls.IsUID(live.GetUID()) {
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
