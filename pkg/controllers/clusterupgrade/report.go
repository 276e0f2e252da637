package clusterupgrade

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/fleet/upgrade"
)

// fieldOwner owns condition UpgradeHeld and nothing else of available catalogues.
const fieldOwner = "cluster-upgrade-controller"

// heldRecheck is how often a held upgrade is checked: if an item becomes Blocked, or the list changes under a Core
// set that pins, there is no watched event.
const heldRecheck = 30 * time.Second

// report writes condition UpgradeHeld if it differs, and ends the reconciliation.
func (r *Reconciler) report(ctx context.Context, f *facts) *loop.Outcome {
	decided := f.decision
	r.reports.note(f.cluster.Ref, decided.Reason)
	if decided.GaveUp != "" {
		r.Recorder.Eventf(f.cluster.Object, nil, "Warning", v1.EventUpgradeNotHeld, "Upgrade", "%s", decided.Message)
	}
	done := &loop.Outcome{Kind: loop.Done, Recheck: decided.Recheck}
	if decided.Held && (done.Recheck <= 0 || done.Recheck > heldRecheck) {
		done.Recheck = heldRecheck
	}
	isNews := decided.Reason != f.report.before.Reason
	if isNews || decided.Message != f.report.message || decided.Since.Before(f.report.before.Since) { // from a clock that was ahead
		f.report.isWritten = false
	}
	f.report.before, f.report.message = upgrade.Before{Reason: decided.Reason, Since: decided.Since}, decided.Message
	if isNews && decided.Held { // users watch the Cluster, and not the catalogue, which may be created later
		r.Recorder.Eventf(f.cluster.Object, nil, "Normal", v1.EventUpgradeWaits, "Upgrade", "%s", decided.Message)
	}
	if f.report.isWritten || f.report.object == "" {
		return done // the creation of the catalogue causes an event
	}
	conditions := []metav1.Condition{}
	if decided.Reason != "" {
		status := metav1.ConditionFalse
		if decided.Held {
			status = metav1.ConditionTrue
		}
		conditions = append(conditions, metav1.Condition{
			Type: v1.ConditionUpgradeHeld, Status: status, Reason: decided.Reason, Message: decided.Message,
			// A stage begins with its reason: the timeout counts from there.
			LastTransitionTime: metav1.NewTime(decided.Since),
		})
	}
	if err := r.write(ctx, f, conditions); err != nil {
		return failed(err)
	}
	f.report.isWritten = true
	return done
}

// write applies this controller's condition.
func (r *Reconciler) write(ctx context.Context, f *facts, conditions []metav1.Condition) error {
	key, about := cluster.AvailableOf(f.cluster.Ref), loop.Metadata(v1.GroupVersion.WithKind("AddonCatalogue"))
	about.Namespace, about.Name, about.UID = key.Namespace, key.Name, f.report.object
	err := loop.ApplyStatus(ctx, r.Client, fieldOwner, about, map[string]any{"conditions": conditions})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		f.report.object = "" // another object by now; it causes an event
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing condition UpgradeHeld of cluster %q: %w", f.cluster.Name, err)
	}
	return nil
}
