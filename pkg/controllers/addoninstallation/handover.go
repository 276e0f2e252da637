package addoninstallation

import (
	"context"
	"errors"
	"slices"
	"sync"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// errHandover says that an installation of the add-on is just being removed, by a pass that may not know of this one.
var errHandover = errors.New("another installation of the add-on is being removed")

func handover() loop.Outcome {
	return loop.Waiting{
		Condition: kubermaticv1.ConditionApplied, Reason: kubermaticv1.ReasonWaitingForStage, Recheck: removalRecheck,
		Message: "another installation of the add-on is being removed: what both have is looked at after that",
	}
}

// handovers knows the namespaces in which a pass removes what may be shared. An installation whose intent was recorded during it may
// not be seen by it; the passes after that do.
type handovers struct {
	mutex  sync.Mutex
	passes map[string]int
}

// begin notes a pass; it is over when end is called.
func (h *handovers) begin(namespace string) (end func()) {
	h.count(namespace, 1)
	return func() { h.count(namespace, -1) }
}

func (h *handovers) count(namespace string, change int) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.passes == nil {
		h.passes = map[string]int{}
	}
	if h.passes[namespace] += change; h.passes[namespace] == 0 {
		delete(h.passes, namespace)
	}
}

func (h *handovers) underWay(namespace string) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.passes[namespace] > 0
}

// pruned are the superseded objects that go: neither those that a hook made its own, nor those that siblings have.
func (r *Reconciler) pruned(ctx context.Context, f *facts) (ownership.Inventory, error) {
	superseded := f.record().WithoutHooked(f.record().Superseded)
	if !canBeShared(superseded) {
		return superseded, nil
	}
	siblings, err := r.siblings(f)(ctx)
	free, _ := superseded.Held(siblings)
	return free, err
}

func canBeShared(objects ownership.Inventory) bool {
	return slices.ContainsFunc(objects, func(entry ownership.Entry) bool { return ownership.CanBeShared(entry.Key) })
}

// goes is everything that goes with an installation: what it has, or used of siblings, and no sibling has that stays. Of those that go
// together the last by name takes along what they shared, once the others are gone; waits names one of them.
func (r *Reconciler) goes(ctx context.Context, f *facts) (objects ownership.Inventory, waits string, err error) {
	record := f.record()
	objects = removable(record)
	if len(record.Shared) == 0 && !canBeShared(objects) {
		return objects, "", nil
	}
	siblings, err := r.siblings(f)(ctx)
	if err != nil {
		return nil, "", err
	}
	objects = objects.Without(record.Shared)
	for _, used := range record.Shared {
		used.Owner = ""
		objects = append(objects, used)
	}
	free, _ := objects.Held(siblings)
	objects = nil
	for _, entry := range free {
		others := ownership.TakenAlong(entry, siblings)
		if len(others) == 0 {
			objects = append(objects, entry)
			continue
		}
		if slices.Max(others) < f.installation.Name {
			waits = others[0]
		}
	}
	return objects, waits, nil
}
