package addoninstallation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
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

// failed is a call on the seed that failed.
func failed(err error) loop.Outcome { return outcomeOf(installer.Failed(err)) }

func (r *Reconciler) loadRecord(ctx context.Context, f *facts) loop.Outcome {
	return loaded(f, f.Load(ctx))
}

// loaded is what comes of reading the record.
func loaded(f *facts, err error) loop.Outcome {
	if newer, ok := errors.AsType[*revision.NewerFormatError](err); ok {
		return loop.Stalled{
			Condition: kubermaticv1.ConditionReady, Reason: kubermaticv1.ReasonRecordFromNewerRelease,
			Message: newer.Error() + ": upgrade this seed's controller manager",
		}
	}
	_, f.damaged = errors.AsType[*revision.DamagedError](err)
	if err != nil {
		return failed(err)
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
	installed := installedVersion(f)
	choice, refusal := resolution.Request{
		Installation: f.installation, Installed: installed, Cluster: f.cluster,
		AllowPrereleases: r.Options.AllowPrereleases,
	}.Choose(entry)
	f.selected = &selected{target: installed, availableUpdate: choice.AvailableUpdate} // it stays at that without another
	if refusal != nil {
		return f.incompatible(refusal.Reason(), refusal.Error())
	}
	f.choice = choice
	if choice.Leaves && f.installation.Status.Target != choice.Version.Version { // it is news once
		f.left = fmt.Sprintf("version %q is left for version %q: a Core catalogue says so (annotation %s)",
			installed, choice.Version.Version, kubermaticv1.AnnotationLeaveVersions)
	}
	f.selected.target = choice.Version.Version
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
func installedVersion(f *facts) string { return resolution.InstalledOnRecord(f.Record(), addonOf(f)) }
