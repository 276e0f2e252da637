package addoninstallation

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/helmrelease"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
	"github.com/trellis-addons/trellis/pkg/install/installer"
	"github.com/trellis-addons/trellis/pkg/install/rendering"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/values/images"
)

// recordIntent records the objects to apply before the first of them is applied.
func (r *Reconciler) recordIntent(ctx context.Context, f *facts) *loop.Outcome {
	if f.run.Decision.IsRecorded() {
		return nil
	}
	wanted := wantedRecord(f)
	outcome := compareRendered(ctx, f, &wanted)
	if outcome == nil && f.run.Decision.Do == revision.Begin {
		outcome = f.run.Begin(ctx, wanted, f.choice.Leaves)
	}
	if outcome == nil {
		f.memory.movedFor = f.run.Asked.ReconcileAt
	}
	return outcome
}

// wantedRecord is the record of the version, content and values.
func wantedRecord(f *facts) revision.Record {
	version, template := f.choice.Version.Version, f.choice.Version.Template
	return revision.Record{
		Addon: addonOf(f.installation), Catalogue: f.choice.Origin.Catalogue, Version: version,
		EntryDigest: f.choice.Origin.Digest, Content: f.choice.Origin.Content,
		Core: f.choice.Core, Method: template.Method, Artifact: kubermaticv1.Artifact{Revision: f.snapshot.Revision, Digest: f.snapshot.Digest},
		Inputs: f.inputs.Hash, Wanted: f.inputs.Wanted, ObjectsDigest: apply.ObjectsDigest(f.run.Objects),
		CRDs: rendering.CRDPolicy(template), OnClusterDeletion: onClusterDeletion(template),
		Timeout: timeoutOf(template), Health: healthOf(template, addonOf(f.installation)), Hub: revision.Hub{Access: template.Access},
		Values: f.values.Merged, Origins: f.values.Origins,
		PlatformValues: f.values.Granted,
		Images:         imagesOf(f),
		From:           installedVersion(f), Atomic: template.Atomic, Helm: describedBy(f.chart, f.run.NextRelease(releaseName(f))),
	}
}

const (
	// mostImages of a revision are shown, each of at most longestImage bytes.
	mostImages, longestImage = 50, 512
)

// imagesOf are the images of the objects and hooks, without those that contain a secret.
func imagesOf(f *facts) []string {
	objects := slices.Clone(f.run.Objects)
	if run, err := hooks.Objects(f.run.Hooks); err == nil { // hooks that can't be decoded are refused when they run
		objects = append(objects, run...)
	}
	secret, granted := calls.MaskOf(f.secretLayers()), f.hides()
	found := slices.DeleteFunc(images.Of(objects), func(image string) bool {
		return len(image) > longestImage || secret.Text(image) != image || granted.Text(image) != image
	})
	return found[:min(len(found), mostImages)]
}

// describedBy adds the chart's metadata to the Helm release of a record; nil for go-template.
func describedBy(chart *render.Chart, helm *helmrelease.Release) *helmrelease.Release {
	if chart == nil {
		return nil
	}
	helm.ChartName, helm.ChartVersion, helm.AppVersion = chart.Name, chart.Version, chart.AppVersion
	helm.Manifest, helm.Config = chart.Manifest, chart.Config
	return helm
}

// apply continues the rollout as far as possible; it announces a long one first.
func (r *Reconciler) apply(ctx context.Context, f *facts) *loop.Outcome {
	if f.run.Decision.IsApplied() {
		return nil
	}
	if outcome := announceRollout(f, f.run.PlanRollout()); outcome != nil {
		return outcome
	}
	return f.run.Advance(ctx)
}

// isLeaving says whether an installation is deleted together with the objects that only it has.
func isLeaving(other *kubermaticv1.AddonInstallation) bool {
	return other.DeletionTimestamp != nil && other.Spec.DeletionPolicy != kubermaticv1.DeletionOrphan
}

// installationsOf lists a cluster's installations. The cache shares the objects: do not change them.
func (r *Reconciler) installationsOf(
	ctx context.Context, ref target.Ref, of ...client.ListOption,
) ([]kubermaticv1.AddonInstallation, error) {
	list := &kubermaticv1.AddonInstallationList{}
	err := r.Client.List(ctx, list, append(of, cluster.InstallationsOf(ref), client.UnsafeDisableDeepCopy)...)
	return cluster.OnlyOf(ref, list.Items), err
}

// others are the other installations of the cluster.
func (r *Reconciler) others(ctx context.Context, f *facts) ([]installer.Other, error) {
	object := f.installation
	all, err := r.installationsOf(ctx, f.of())
	if err != nil {
		return nil, fmt.Errorf("listing the cluster's installations: %w", err)
	}
	others := make([]installer.Other, 0, len(all))
	for i := range all {
		other := &all[i]
		if other.Name == object.Name || f.cluster.Deleted && installation.HasNothing(other) {
			continue
		}
		deleted, leaving := other.DeletionTimestamp != nil, isLeaving(other)
		if f.cluster.Deleted { // objects of a released installation stay there
			deleted, leaving = installation.GoesAlong(other), installation.GoesAlong(other)
		}
		others = append(others, installer.Other{
			Name: other.Name, Addon: string(other.Spec.AddonRef.Name), TargetNamespace: other.Spec.TargetNamespace,
			Deleted: deleted, Leaving: leaving, Elder: isOlder(other, object),
			Idle: installation.HasNothing(other), Fingerprint: fingerprintOf(other),
		})
	}
	return others, nil
}

// fingerprintOf identifies the cached state of an installation, so that its record is read only after a change.
func fingerprintOf(other *kubermaticv1.AddonInstallation) string {
	flags := strconv.FormatBool(other.DeletionTimestamp != nil) + " " + strconv.FormatBool(isLeaving(other))
	state := string(other.UID) + " " + other.Name + " " + flags
	if applied := other.Status.LastApplied; applied != nil {
		state += " " + applied.Version + " " + applied.Objects
	}
	return state + "\n"
}

// sharedText is the part of the condition's message about objects of others; "" if nothing is shared.
func sharedText(record *revision.Record) string {
	if record == nil || len(record.Shared) == 0 {
		return ""
	}
	first := record.Shared[0]
	return andMore(fmt.Sprintf("%s is shared: it belongs to installation %q of the same add-on", first.Key, first.Owner),
		" (and %d more)", len(record.Shared)-1)
}

// nameOf finds the name of the installation in a cluster whose objects carry an ID; "" if there is none, or no longer
// one: in a cluster that is being deleted, an installation without objects counts as gone. If the list fails it returns
// the ID: nothing is taken from an installation that may still exist. It is also called after reconciliations and reads
// from the cache, so it takes no context.
func (r *Reconciler) nameOf(in target.Description, origin types.UID, id string) string {
	all, err := r.installationsOf(context.Background(), in.Ref)
	if err != nil {
		return id
	}
	for i := range all {
		if in.Deleted && installation.HasNothing(&all[i]) {
			continue
		}
		if (ownership.Owner{ClusterUID: origin, Installation: all[i].Name}).ID() == id {
			return all[i].Name
		}
	}
	return ""
}
