package addoninstallation

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/revision"
)

func waiting(reason, message string, recheck time.Duration) loop.Outcome {
	return loop.Waiting{Condition: kubermaticv1.ConditionReady, Reason: reason, Message: message, Recheck: recheck}
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

// resolve finds the version in the merged catalogue, and in nothing that only has its name. A refusal ends the pass here, whether
// or not something is installed; what is installed is maintained all the same.
func (r *Reconciler) resolve(ctx context.Context, f *facts) loop.Outcome {
	name := addonOf(f)
	found := &kubermaticv1.AddonCatalogue{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Options.CatalogueNamespace, Name: name}, found)
	if apierrors.IsNotFound(err) || err == nil && (!r.Marks.Believes(found) || len(found.Spec.Addons) == 0) {
		return r.unknownAddon(f, name)
	}
	if err != nil {
		return failed(err)
	}
	return r.choose(f, found)
}

func (r *Reconciler) unknownAddon(f *facts, name string) loop.Outcome {
	f.installation.Status.AvailableUpdate, f.installation.Status.Target = "", installedVersion(f)
	if installed := installedVersion(f); installed != "" {
		return f.incompatible(kubermaticv1.ReasonWithdrawn,
			fmt.Sprintf("add-on %q left the catalogue; its version %q stays installed", name, installed))
	}
	return f.incompatible(kubermaticv1.ReasonAddonUnknown, fmt.Sprintf(
		"no catalogue has an add-on %q: see AddonCatalogue %q in this namespace for those that fit", name, kubermaticv1.AvailableCatalogue))
}

// incompatible ends the pass with condition Compatible False. That the version was withdrawn is news once.
func (f *facts) incompatible(reason, message string) loop.Outcome {
	before := meta.FindStatusCondition(f.installation.Status.Conditions, kubermaticv1.ConditionCompatible)
	if reason == kubermaticv1.ReasonWithdrawn && (before == nil || before.Reason != reason) {
		f.withdrawn = message
	}
	return loop.Stalled{Condition: kubermaticv1.ConditionCompatible, Reason: reason, Message: message}
}

func (r *Reconciler) choose(f *facts, merged *kubermaticv1.AddonCatalogue) loop.Outcome {
	entry, err := r.entries.of(merged)
	if err != nil {
		return failed(err)
	}
	if outcome := fromForeignCatalogue(f.installation, entry.Type); outcome != nil {
		return outcome
	}
	platform := catalogue.Platform{
		KKPVersion: entry.KKPVersion, K8sVersion: f.cluster.Status.Versions.ControlPlane, AllowPrereleases: r.Options.AllowPrereleases,
	}
	selection, err := catalogue.Select(entry, f.installation.Spec.AddonRef.Version, installedVersion(f), platform, catalogue.SelectOptions{
		AllowDowngrade: f.installation.Annotations[kubermaticv1.AnnotationAllowDowngrade] == "true",
		Core:           f.installation.Spec.CoreAddon,
	})
	f.installation.Status.AvailableUpdate = selection.AvailableUpdate
	var refusal catalogue.Refusal
	if errors.As(err, &refusal) {
		f.installation.Status.Target = installedVersion(f) // it stays at that
		return f.incompatible(refusal.Reason(), refusal.Error())
	}
	if err != nil {
		return failed(err)
	}
	f.entry, f.entryDigest = selection.Version, selection.Origin.Digest
	f.core = entry.Type == kubermaticv1.CatalogueCore
	f.leave(entry, selection.Version.Version)
	f.installation.Status.Target = selection.Version.Version
	if f.entry.Template == nil || f.entry.Source == nil {
		return f.incompatible(kubermaticv1.ReasonVersionUnknown, fmt.Sprintf(
			"version %q of add-on %q has no template and source in the catalogue", f.entry.Version, entry.Addon.Name))
	}
	return nil
}

// leave notes that a core installation goes to a version from one that a Core catalogue has clusters leave. It is news once.
func (f *facts) leave(entry *catalogue.Entry, chosen string) {
	installed := installedVersion(f)
	f.leaving = f.installation.Spec.CoreAddon && installed != "" && entry.Left(installed)
	if f.leaving && f.installation.Status.Target != chosen {
		f.left = fmt.Sprintf("version %q is left for version %q: a Core catalogue says so (annotation %s)", installed, chosen,
			kubermaticv1.AnnotationLeaveVersions)
	}
}

// installedVersion is the version in the user cluster, of the same add-on, or "". An intent that was not carried out to its
// end installed nothing: the version before it counts. status.version shows it, and catalogue.InstalledVersion reads it there for
// whoever has no record.
func installedVersion(f *facts) string {
	record := f.record()
	switch {
	case record == nil || record.Addon != addonOf(f):
		return ""
	case record.State == revision.StateApplied:
		return record.Version
	}
	return record.From
}
