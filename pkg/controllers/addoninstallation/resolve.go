package addoninstallation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/resolution"
	"github.com/trellis-addons/trellis/pkg/revision"
)

func waiting(reason, message string, recheck time.Duration) loop.Outcome {
	return loop.Waiting{Condition: kubermaticv1.ConditionReady, Reason: reason, Message: message, Recheck: recheck}
}

// checkpoint has the status say what is under way; the next pass, which begins at once, goes on from there.
func checkpoint(condition, message string) loop.Outcome {
	return loop.Checkpoint{Condition: condition, Reason: kubermaticv1.ReasonProgressing, Message: message, AtOnce: true}
}

// failed is a call on the seed that failed, or a record that the user cluster made larger than its objects explain.
func failed(err error) loop.Outcome {
	if grown, ok := errors.AsType[*revision.GrowthError](err); ok {
		return loop.RetryAt{
			Condition: kubermaticv1.ConditionReady, Reason: kubermaticv1.ReasonClusterMisbehaves, Unknown: true, Message: grown.Error(),
		}
	}
	return loop.RetryAt{Condition: kubermaticv1.ConditionReady, Reason: kubermaticv1.ReasonFailed, Message: err.Error()}
}

func (r *Reconciler) loadRecord(ctx context.Context, f *facts) loop.Outcome {
	return r.loadRecordBy(ctx, f, r.Records.LoadFirst)
}

type recordLoader func(ctx context.Context, namespace string, owner ownership.Owner) (*revision.Record, error)

func (r *Reconciler) loadRecordBy(ctx context.Context, f *facts, load recordLoader) loop.Outcome {
	if f.memory.loaded {
		return nil
	}
	record, err := load(ctx, f.installation.Namespace, f.owner)
	var newer *revision.NewerFormatError
	if errors.As(err, &newer) {
		return loop.Stalled{
			Condition: kubermaticv1.ConditionReady, Reason: kubermaticv1.ReasonRecordFromNewerRelease,
			Message: newer.Error() + ": upgrade this seed's controller manager",
		}
	}
	var damaged *revision.DamagedError
	f.damaged = errors.As(err, &damaged)
	if err != nil {
		return failed(err)
	}
	f.memory.record, f.memory.loaded = record, true
	if record != nil && record.State == revision.StateApplied {
		f.memory.record = record.Light() // whatever needs the rest reads it
	}
	if record != nil && record.Skipped > 0 {
		r.Recorder.Eventf(f.installation, nil, "Warning", kubermaticv1.EventRecordDamaged, "LoadRecord",
			"the record of revision %d can't be read: %s. Everything is applied anew on top of revision %d, and objects that only the damaged "+
				"record knew stay where they are", record.Skipped, record.Damage, record.Revision)
	}
	return nil
}

// resolve chooses the version. A refusal ends the pass here, whether or not something is installed; what is
// installed is maintained all the same.
func (r *Reconciler) resolve(ctx context.Context, f *facts) loop.Outcome {
	key := client.ObjectKey{Namespace: r.Options.CatalogueNamespace, Name: addonOf(f)}
	entry, err := r.Marks.Entry(ctx, r.Client, key)
	if err != nil {
		return failed(err)
	}
	state, installed := &f.installation.Status, installedVersion(f)
	choice, refusal := resolution.Request{
		Installation: f.installation, Installed: installed, Cluster: f.cluster,
		AllowPrereleases: r.Options.AllowPrereleases,
	}.Choose(entry)
	state.AvailableUpdate = choice.AvailableUpdate
	if refusal != nil {
		state.Target = installed // it stays at that
		return f.incompatible(refusal.Reason(), refusal.Error())
	}
	f.choice = choice
	if choice.Leaves && state.Target != choice.Version.Version { // it is news once
		f.left = fmt.Sprintf("version %q is left for version %q: a Core catalogue says so (annotation %s)",
			installed, choice.Version.Version, kubermaticv1.AnnotationLeaveVersions)
	}
	state.Target = choice.Version.Version
	return nil
}

// incompatible ends the pass with condition Compatible False. That the version was withdrawn is news once.
func (f *facts) incompatible(reason, message string) loop.Outcome {
	before := meta.FindStatusCondition(f.installation.Status.Conditions, kubermaticv1.ConditionCompatible)
	if reason == kubermaticv1.ReasonWithdrawn && (before == nil || before.Reason != reason) {
		f.withdrawn = message
	}
	return loop.Stalled{Condition: kubermaticv1.ConditionCompatible, Reason: reason, Message: message}
}

// installedVersion is the version in the user cluster, of the same add-on, or "". status.version shows it.
func installedVersion(f *facts) string { return resolution.InstalledOnRecord(f.record(), addonOf(f)) }
