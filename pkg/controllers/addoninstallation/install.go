package addoninstallation

import (
	"context"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	order "github.com/trellis-addons/trellis/pkg/installation"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/rendering"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/target"
)

// recordIntent puts on record what will be applied before any of it is.
func (r *Reconciler) recordIntent(ctx context.Context, f *facts) loop.Outcome {
	if f.pass.Decision.IsRecorded() {
		return nil
	}
	wanted := wantedRecord(f)
	outcome := compareRendered(ctx, f, &wanted)
	if outcome == nil && f.pass.Decision.Do == revision.Begin {
		outcome = outcomeOf(f.pass.Begin(ctx, wanted, f.choice.Leaves))
	}
	if outcome == nil {
		f.memory.movedFor = f.pass.Asked.ReconcileAt
	}
	return outcome
}

// wantedRecord is what the catalogue and the values come to, in the words of a record.
func wantedRecord(f *facts) revision.Record {
	version, template := f.choice.Version.Version, f.choice.Version.Template
	return revision.Record{
		Addon: addonOf(f.installation), Catalogue: f.choice.Origin.Catalogue, Version: version,
		EntryDigest: f.choice.Origin.Digest, Content: f.choice.Origin.Content,
		Core: f.choice.Core, Method: template.Method, Artifact: kubermaticv1.Artifact{Revision: f.snapshot.Revision, Digest: f.snapshot.Digest},
		Inputs: f.inputs.Hash, Wanted: f.inputs.Wanted, ObjectsDigest: apply.ObjectsDigest(f.pass.Objects),
		CRDs: rendering.CRDPolicy(template), OnClusterDeletion: onClusterDeletion(template),
		Timeout: timeoutOf(template), Health: healthOf(template, addonOf(f.installation)), Hub: revision.Hub{Access: template.Access},
		Values: f.values.Merged, Origins: f.values.Origins,
		PlatformValues: f.values.Granted,
		From:           installedVersion(f), Atomic: template.Atomic, Helm: describedBy(f.chart, f.pass.NextRelease(releaseName(f))),
	}
}

// describedBy adds what a chart says to the Helm release of a record; nil for go-template.
func describedBy(chart *render.Chart, helm *helmrelease.Release) *helmrelease.Release {
	if chart == nil {
		return nil
	}
	helm.ChartName, helm.ChartVersion, helm.AppVersion = chart.Name, chart.Version, chart.AppVersion
	helm.Manifest, helm.Config = chart.Manifest, chart.Config
	return helm
}

// apply takes the rollout as far as it goes now; a long one is announced first.
func (r *Reconciler) apply(ctx context.Context, f *facts) loop.Outcome {
	if f.pass.Decision.IsApplied() {
		return nil
	}
	if outcome := announceRollout(f, f.pass.PlanRollout()); outcome != nil {
		return outcome
	}
	return outcomeOf(f.pass.Advance(ctx))
}

// isLeaving says whether an installation goes, and what only it has with it.
func isLeaving(other *kubermaticv1.AddonInstallation) bool {
	return other.DeletionTimestamp != nil && other.Spec.DeletionPolicy != kubermaticv1.DeletionOrphan
}

// installationsOf lists a cluster's installations. The cache shares the objects: they must not be
// changed.
func (r *Reconciler) installationsOf(
	ctx context.Context, ref target.Ref, of ...client.ListOption,
) ([]kubermaticv1.AddonInstallation, error) {
	list := &kubermaticv1.AddonInstallationList{}
	err := r.Client.List(ctx, list, append(of, cluster.InstallationsOf(ref), client.UnsafeDisableDeepCopy)...)
	return cluster.OnlyOf(ref, list.Items), err
}

// others are the other installations of the cluster.
func (r *Reconciler) others(ctx context.Context, f *facts) ([]installer.Other, error) {
	installation := f.installation
	all, err := r.installationsOf(ctx, f.of())
	if err != nil {
		return nil, fmt.Errorf("listing the cluster's installations: %w", err)
	}
	others := make([]installer.Other, 0, len(all))
	for i := range all {
		other := &all[i]
		if other.Name == installation.Name || f.cluster.Deleted && order.HasNothing(other) {
			continue
		}
		deleted, leaving := other.DeletionTimestamp != nil, isLeaving(other)
		if f.cluster.Deleted { // whatever else is let go stays there
			deleted, leaving = order.GoesAlong(other), order.GoesAlong(other)
		}
		others = append(others, installer.Other{
			Name: other.Name, Addon: string(other.Spec.AddonRef.Name), TargetNamespace: other.Spec.TargetNamespace,
			Deleted: deleted, Leaving: leaving, Elder: isOlder(other, installation),
			Idle: order.HasNothing(other), Fingerprint: fingerprintOf(other),
		})
	}
	return others, nil
}

// fingerprintOf is what the cache says of an installation, so that its record is read only where
// something changed.
func fingerprintOf(other *kubermaticv1.AddonInstallation) string {
	flags := strconv.FormatBool(other.DeletionTimestamp != nil) + " " + strconv.FormatBool(isLeaving(other))
	stand := string(other.UID) + " " + other.Name + " " + flags
	if applied := other.Status.LastApplied; applied != nil {
		stand += " " + applied.Version + " " + applied.Objects
	}
	return stand + "\n"
}

// sharedText says in the condition what others have; "" where nothing is shared.
func sharedText(record *revision.Record) string {
	if record == nil || len(record.Shared) == 0 {
		return ""
	}
	first := record.Shared[0]
	return andMore(fmt.Sprintf("%s is shared: it belongs to installation %q of the same add-on", first.Key, first.Owner),
		" (and %d more)", len(record.Shared)-1)
}

// nameOf finds the name of the installation in a cluster whose objects carry an ID; "" where there
// is none, or none any more: of a cluster that goes, what has nothing there any more counts as gone.
// Where the list fails the ID stands for the name: nothing is taken from what may still exist. It is
// called after passes too and reads from the cache, so it has no context of one.
func (r *Reconciler) nameOf(in target.Description, origin types.UID, id string) string {
	all, err := r.installationsOf(context.Background(), in.Ref)
	if err != nil {
		return id
	}
	for i := range all {
		if in.Deleted && order.HasNothing(&all[i]) {
			continue
		}
		if (ownership.Owner{ClusterUID: origin, Installation: all[i].Name}).ID() == id {
			return all[i].Name
		}
	}
	return ""
}
