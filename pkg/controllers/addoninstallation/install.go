package addoninstallation

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/conditions"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/text"
)

// recordIntent puts on record what will be applied before any of it is.
func (r *Reconciler) recordIntent(ctx context.Context, f *facts) loop.Outcome {
	if f.Decision.IsRecorded() {
		return nil
	}
	wanted := r.wantedRecord(f)
	if outcome := r.compareRendered(ctx, f, wanted); outcome != nil || f.Decision.Do != revision.Begin {
		return outcome
	}
	return outcomeOf(f.Begin(ctx, wanted, f.choice.Leaves))
}

// wantedRecord is what the catalogue and the values come to, in the words of a record.
func (r *Reconciler) wantedRecord(f *facts) revision.Record {
	return revision.Record{
		Addon: addonOf(f), Version: f.choice.Version.Version, EntryDigest: f.choice.Origin.Digest, Core: f.choice.Core,
		Method: f.choice.Version.Template.Method, Artifact: kubermaticv1.Artifact{Revision: f.snapshot.Revision, Digest: f.snapshot.Digest},
		Inputs: f.inputs.Hash, Wanted: f.inputs.Wanted, ObjectsDigest: apply.ObjectsDigest(f.Objects), CRDs: crdPolicy(f), Timeout: timeoutOf(f),
		Values: f.values.Merged, Origins: f.values.Origins,
		From: installedVersion(f), Atomic: f.choice.Version.Template.Atomic, Helm: helmRecord(f),
	}
}

// helmRecord is what the record says of the Helm release; nil for go-template.
func helmRecord(f *facts) *helmrelease.Release {
	chart := f.chart
	if chart == nil {
		return nil
	}
	helm := f.NextRelease(releaseName(f))
	helm.ChartName, helm.ChartVersion, helm.AppVersion = chart.Name, chart.Version, chart.AppVersion
	helm.Manifest, helm.Config = chart.Manifest, chart.Config
	return helm
}

// apply takes the rollout as far as it goes now; a long one is announced first.
func (r *Reconciler) apply(ctx context.Context, f *facts) loop.Outcome {
	if f.Decision.IsApplied() {
		return nil
	}
	if outcome := announceRollout(f, f.Left()); outcome != nil {
		return outcome
	}
	return outcomeOf(f.Advance(ctx))
}

// repairDrift looks whether the user cluster still has what was applied, and puts back what differs.
func (r *Reconciler) repairDrift(ctx context.Context, f *facts) loop.Outcome {
	stop := f.RepairDrift(ctx)
	if f.Surveyed {
		f.memory.refreshed = false
	}
	return outcomeOf(stop)
}

// rest ends a pass that has nothing more to do before the next look.
func (r *Reconciler) rest(_ context.Context, f *facts) loop.Outcome {
	return loop.Done{Recheck: f.NextSurvey()}
}

// isLeaving says whether an installation goes, and what only it has with it.
func isLeaving(other *kubermaticv1.AddonInstallation) bool {
	return other.DeletionTimestamp != nil && other.Spec.DeletionPolicy != kubermaticv1.DeletionOrphan
}

// others are the other installations of the cluster.
func (r *Reconciler) others(ctx context.Context, installation *kubermaticv1.AddonInstallation) ([]installer.Other, error) {
	list := &kubermaticv1.AddonInstallationList{} // shared with the cache, and only read
	if err := r.Client.List(ctx, list, client.InNamespace(installation.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the cluster's installations: %w", err)
	}
	others := make([]installer.Other, 0, len(list.Items))
	for i := range list.Items {
		other := &list.Items[i]
		if other.Name == installation.Name {
			continue
		}
		others = append(others, installer.Other{
			Name: other.Name, Addon: string(other.Spec.AddonRef.Name), TargetNamespace: other.Spec.TargetNamespace,
			Deleted: other.DeletionTimestamp != nil, Leaving: isLeaving(other), Elder: isOlder(other, installation), Stand: standOf(other),
		})
	}
	return others, nil
}

// standOf tells what the cache says of an installation, so that its record is read only where something changed.
func standOf(other *kubermaticv1.AddonInstallation) string {
	stand := fmt.Sprintf("%s %s %t %t", other.UID, other.Name, other.DeletionTimestamp != nil, isLeaving(other))
	if applied := other.Status.LastApplied; applied != nil {
		stand += fmt.Sprintf(" %s %s", applied.Version, applied.Objects)
	}
	return stand + "\n"
}

// sharedText says in the condition what others have; "" where nothing is shared.
func sharedText(record *revision.Record) string {
	if record == nil || len(record.Shared) == 0 {
		return ""
	}
	first := record.Shared[0]
	text := fmt.Sprintf("%s is shared: it belongs to installation %q of the same add-on", first.Key, first.Owner)
	if more := len(record.Shared) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// nameOf finds the name of the installation in a cluster whose objects carry an ID; "" where there is none, or none any more.
// Where that can't be told the ID stands for the name: nothing is taken from what may still exist. It outlives a pass and reads
// from the cache, so it has no context of one.
func (r *Reconciler) nameOf(namespace string, origin types.UID, id string) string {
	list := &kubermaticv1.AddonInstallationList{} // shared with the cache, and only read
	err := r.Client.List(context.Background(), list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	if err != nil {
		return id
	}
	for i := range list.Items {
		if (ownership.Owner{ClusterUID: origin, Installation: list.Items[i].Name}).ID() == id {
			return list.Items[i].Name
		}
	}
	return ""
}

// telling is what an event is about.
type telling struct{ kind, reason, action string }

// quicklyApplied is how many objects are written in so little time that their rollout need not be announced.
const quicklyApplied = 30

// announceRollout has the status show a long rollout before it begins, once for each edit: else nothing is told of the edit until
// the rollout waits for something or is through. Left is how many objects are to be written.
func announceRollout(f *facts, left int) loop.Outcome {
	generation := f.installation.Generation
	isTold := f.memory.told == generation || f.installation.Status.ObservedGeneration == generation
	if isTold || left <= quicklyApplied {
		return nil
	}
	f.memory.told = generation // also where the status can't be written
	return checkpoint(kubermaticv1.ConditionApplied, fmt.Sprintf("%d of %d objects are about to be written", left, len(f.Objects)))
}

// announce tells changes as events; conditions tell the state.
func (r *Reconciler) announce(ctx context.Context, f *facts) {
	if f.left != "" {
		r.tell(ctx, f, telling{corev1.EventTypeNormal, kubermaticv1.EventLeft, "Resolve"}, f.left)
	}
	if f.withdrawn != "" {
		r.tell(ctx, f, telling{corev1.EventTypeWarning, kubermaticv1.EventWithdrawn, "Resolve"}, f.withdrawn)
	}
	record := cmp.Or(f.Record(), f.Applied) // where a save failed since, the record is to be read again
	switch {
	case f.Applied == nil:
	case record.Rollback != nil:
		r.tell(ctx, f, telling{corev1.EventTypeWarning, kubermaticv1.EventRolledBack, "RollBack"}, givenUpText(record))
	default:
		r.tell(ctx, f, telling{corev1.EventTypeNormal, kubermaticv1.EventApplied, "Apply"}, fmt.Sprintf("applied %s %s: %s, %d written",
			f.installation.Spec.AddonRef.Name, record.Version, text.Count(len(record.Inventory), "object"), f.Progress.Written))
	}
	if len(f.Misbehaved) > 0 {
		r.tell(ctx, f, telling{corev1.EventTypeWarning, kubermaticv1.ReasonClusterMisbehaves, "Apply"}, installer.TextOf(f.Misbehaved))
	}
	if len(f.Shared) > 0 {
		r.tell(ctx, f, telling{corev1.EventTypeNormal, kubermaticv1.EventShared, "Apply"}, listed(f.Shared))
	}
	if len(f.Repaired) > 0 {
		r.tell(ctx, f, telling{corev1.EventTypeNormal, kubermaticv1.EventRepaired, "Repair"}, repairedText(f.Repaired))
	}
}

// tellTrouble tells, once it is in the status, why an installation is not ready, and when it is ready again. What was applied since
// makes old trouble new: nobody who reads the events is to take what was applied for what works.
func (r *Reconciler) tellTrouble(ctx context.Context, f *facts) {
	if f.Applied != nil {
		f.memory.trouble = conditions.Told{}
	}
	ready, isNews := f.memory.trouble.News(f.installation.Status.Conditions)
	switch {
	case !isNews:
	case ready.Reason == kubermaticv1.ReasonReady:
		r.tell(ctx, f, telling{corev1.EventTypeNormal, ready.Reason, "Reconcile"}, ready.Message)
	case ready.Reason == kubermaticv1.ReasonRolledBack && f.Applied != nil, ready.Reason == kubermaticv1.ReasonWithdrawn && f.withdrawn != "":
		// announce told it in the same words
	default:
		r.tell(ctx, f, telling{corev1.EventTypeWarning, ready.Reason, "Reconcile"}, ready.Message)
	}
}

// tell says something about an installation in an event, and in the log in the same words.
func (r *Reconciler) tell(ctx context.Context, f *facts, what telling, shown string) {
	shown = text.Message(shown)
	ctrl.LoggerFrom(ctx).Info("told of an installation", "reason", what.reason, "message", shown)
	r.Recorder.Eventf(f.installation, nil, what.kind, what.reason, what.action, "%s", shown)
}

// troubleOf is what was told of an installation before this process began: what its status says, and that a hook failed where its next
// attempt is under way.
func troubleOf(installation *kubermaticv1.AddonInstallation) conditions.Told {
	list := installation.Status.Conditions
	_, ready := conditions.StandingOf(list)
	if ready == nil || ready.Reason != kubermaticv1.ReasonHookRunning || installation.Status.Failures == 0 {
		return conditions.ToldOf(list)
	}
	failed := *ready
	failed.Reason = kubermaticv1.ReasonHookFailed
	return conditions.ToldOf([]metav1.Condition{failed})
}
