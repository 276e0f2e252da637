package coreaddon

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// report is the last report about one cluster. Only reconciliations of that cluster use it.
type report struct {
	// object is the UID of the available catalogue with this status; empty before the status was read.
	object     types.UID
	core       v1.CoreAddons
	conditions []metav1.Condition
	// events are the events that were reported and still apply.
	events map[string]bool
}

// reports has the report of each cluster. Figures are separate, since metrics read them at any time.
type reports struct {
	mutex     sync.Mutex
	byCluster map[target.Ref]*report
	figures   map[target.Ref]figures
}

// figures are the counts of one cluster. orphans are core add-ons from a list that was deleted.
type figures struct {
	v1.CoreAddonCounts
	unfit   int
	orphans int
}

func (r *reports) forCluster(asked target.Ref) *report {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.byCluster == nil {
		r.byCluster, r.figures = map[target.Ref]*report{}, map[target.Ref]figures{}
	}
	if r.byCluster[asked] == nil {
		r.byCluster[asked] = &report{}
	}
	return r.byCluster[asked]
}

func (r *reports) count(asked target.Ref, found figures) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.figures[asked] = found
}

func (r *reports) forget(asked target.Ref) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.byCluster, asked)
	delete(r.figures, asked)
}

// report writes status.core and AddonsReady, reports events, and ends the reconciliation. A reconciliation that wrote
// installations leaves the status to the next one, which its own writes start: so a new core add-on reaches every
// cluster before any status is written.
func (r *Reconciler) report(ctx context.Context, f *facts) *loop.Outcome {
	problem := f.problem()
	if f.inForce != nil && f.inForce.mayMove && problem == nil {
		r.staging.moved(f.key())
	}
	if f.wrote && problem == nil {
		return &loop.Outcome{Kind: loop.Checkpoint}
	}
	core := coreOf(f)
	unfit := 0
	for _, member := range f.plan.members {
		if isUnfit(member) {
			unfit++
		}
	}
	r.reports.count(f.asked, figures{core.CoreAddonCounts, unfit, len(orphansOf(f))})
	r.announce(f)
	if err := r.writeStatus(ctx, f, core, conditionOf(f)); err != nil {
		return failed(err)
	}
	if problem != nil {
		return failed(problem)
	}
	if len(f.plan.taken) > 0 { // its removal starts a reconciliation only if the set already had the name
		return &loop.Outcome{Kind: loop.Done, Recheck: takenRecheck}
	}
	return &loop.Outcome{Kind: loop.Done}
}

// takenRecheck is the interval between retries of a name that a user's installation has.
const takenRecheck = time.Minute

// writeStatus applies this controller's part of the available catalogue's status, if it differs.
func (r *Reconciler) writeStatus(ctx context.Context, f *facts, core v1.CoreAddons, condition metav1.Condition) error {
	about := loop.Metadata(catalogueKind)
	err := r.available.Get(ctx, cluster.AvailableOf(f.cluster.Ref), about)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if f.report.object != about.UID {
		if err := r.readStatus(ctx, f, about.UID); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	wanted := slices.Clone(f.report.conditions)
	conditions.Set(&wanted, condition)
	if equality.Semantic.DeepEqual(f.report.core, core) && same(f.report.conditions, wanted) {
		return nil
	}
	err = loop.ApplyStatus(ctx, r.Client, fieldOwner, about, map[string]any{"core": core, "conditions": wanted})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		f.report.object = "" // another object by now; it causes an event
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing status.core of the available catalogue %q in %q: %w", about.Name, f.asked.Namespace, err)
	}
	f.report.core, f.report.conditions = core, wanted
	return nil
}

// readStatus reads the status that an earlier process wrote, once for each catalogue.
func (r *Reconciler) readStatus(ctx context.Context, f *facts, uid types.UID) error {
	live := &v1.AddonCatalogue{}
	if err := r.Reader.Get(ctx, cluster.AvailableOf(f.cluster.Ref), live); err != nil {
		return err
	}
	f.report.object, f.report.core, f.report.conditions = uid, v1.CoreAddons{}, nil
	if live.UID != uid {
		return nil
	}
	if live.Status.Core != nil {
		f.report.core = *live.Status.Core
	}
	if before := meta.FindStatusCondition(live.Status.Conditions, v1.ConditionAddonsReady); before != nil {
		f.report.conditions = []metav1.Condition{*before}
	}
	return nil
}

func same(a, b []metav1.Condition) bool {
	return slices.EqualFunc(a, b, func(a, b metav1.Condition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
	})
}

// announce reports the new findings of this reconciliation as events.
func (r *Reconciler) announce(f *facts) {
	before := f.report.events
	f.report.events = map[string]bool{}
	first := func(key string) bool {
		f.report.events[key] = true
		return !before[key]
	}
	for _, installation := range f.plan.blocked {
		if first("blocked/" + string(installation.UID)) {
			r.Recorder.Eventf(installation, nil, corev1.EventTypeWarning, v1.EventDeletionBlocked, "Delete", "%s",
				v1.DeletionBlockedMessage)
		}
	}
	for _, installation := range f.plan.members {
		if compatible := meta.FindStatusCondition(installation.Status.Conditions, v1.ConditionCompatible); isUnfit(installation) &&
			first("unfit/"+string(installation.UID)+"/"+compatible.Message) {
			r.Recorder.Eventf(installation, nil, corev1.EventTypeWarning, v1.EventNothingFits, "Select", "%s", compatible.Message)
		}
	}
	if held := heldText(&f.set); held != "" && first("held/"+held) {
		r.Recorder.Eventf(f.cluster.Object, nil, corev1.EventTypeWarning, v1.EventCoreSetUnknown, "Select", "%s; it stays as it is", held)
	}
	if f.terminating && first("terminating") {
		r.Recorder.Eventf(f.cluster.Object, nil, corev1.EventTypeWarning, v1.EventDeletionBlocked, "Delete",
			"namespace %q is being deleted and the cluster is not", f.asked.Namespace)
	}
}
