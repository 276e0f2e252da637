package addoninstallation

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// helmRecord is what the record says of the Helm release; nil for go-template.
func helmRecord(f *facts) *helmrelease.Release {
	chart := f.rendered.Chart
	if chart == nil {
		return nil
	}
	helm := nextHelm(f)
	helm.ChartName, helm.ChartVersion, helm.AppVersion = chart.Name, chart.Version, chart.AppVersion
	helm.Manifest, helm.Config = chart.Manifest, chart.Config
	return helm
}

// nextHelm is the Helm release that a change makes, without what its chart says; nil for go-template.
func nextHelm(f *facts) *helmrelease.Release {
	name := releaseName(f)
	if name == "" {
		return nil
	}
	now := f.stamp()
	helm := &helmrelease.Release{
		Name: name, Namespace: f.installation.Spec.TargetNamespace, Revision: 1, FirstDeployed: now, LastDeployed: now,
	}
	if previous := previousHelm(f); previous != nil && previous.Name == helm.Name {
		helm.Revision, helm.FirstDeployed, helm.TakenOver = previous.Revision+1, previous.FirstDeployed, previous.TakenOver
	}
	if f.foreign != nil {
		helm.Revision, helm.TakenOver = max(helm.Revision, f.foreign.Revision+1), true
		if first := f.foreign.FirstDeployed; !first.IsZero() {
			helm.FirstDeployed = metav1.Time{Time: first}.Rfc3339Copy()
		}
	}
	return helm
}

func previousHelm(f *facts) *helmrelease.Release {
	if record := f.record(); record != nil {
		return record.Helm
	}
	return nil
}

// formerRelease is the Helm release that the user cluster has to lose with the next revision: another method or another
// name came, or the one that had to go before is still there.
func formerRelease(previous *revision.Record, next *helmrelease.Release) *helmrelease.Release {
	switch {
	case previous == nil:
		return nil
	case previous.Helm == nil || next != nil && next.Name == previous.Helm.Name && next.Namespace == previous.Helm.Namespace:
		return previous.Former
	}
	return &helmrelease.Release{Name: previous.Helm.Name, Namespace: previous.Helm.Namespace}
}

// dropFormerRelease takes away the Secrets of a Helm release that this revision no longer is: `helm uninstall` of it would
// delete what is ours.
func (r *Reconciler) dropFormerRelease(ctx context.Context, f *facts) loop.Outcome {
	former := f.record().Former
	if former == nil {
		return nil
	}
	if err := helmrelease.Remove(ctx, f.connection.Secrets.Secrets(former.Namespace), former.Name, f.owner); err != nil {
		return r.remoteFailed(f, kubermaticv1.ConditionApplied, err)
	}
	if err := r.amend(ctx, f, func(kept *revision.Record) { kept.Former = nil }); err != nil {
		return failed(err)
	}
	return nil
}

// writeHelmRelease gives the user cluster the copy that `helm list` shows. The seed's record is the truth: failing to
// write the copy is told and never a failed release; it is tried again, but for one that no Secret holds.
func (r *Reconciler) writeHelmRelease(ctx context.Context, f *facts) loop.Outcome {
	if outcome := r.takeBack(ctx, f); outcome != nil {
		return outcome
	}
	r.copyHelm(ctx, f)
	if f.awaitsCopy() {
		return nil // the former release stays until the new one is there
	}
	return r.dropFormerRelease(ctx, f)
}

// awaitsCopy says whether the user cluster does not show the Helm release yet. One that is too large it never shows.
func (f *facts) awaitsCopy() bool {
	helm := f.record().Helm
	return helm != nil && f.memory.helmWritten == "" && f.memory.helmTooLarge != helm.Secret()
}

// copyHelm writes the copy where it differs from what the user cluster is known to have, or may have been changed there.
func (r *Reconciler) copyHelm(ctx context.Context, f *facts) {
	record := f.record()
	if record.Helm == nil {
		f.installation.Status.Release = nil
		return
	}
	f.installation.Status.Release = releaseState(record.Helm)
	if f.memory.helmTooLarge == record.Helm.Secret() {
		return
	}
	if f.memory.helmWritten == helmState(record) && (!r.surveyDue(f) || r.copyStands(ctx, f)) {
		return
	}
	if err := r.writeCopy(ctx, f); err != nil {
		f.memory.helmWritten = ""
		f.memory.copyTaken = isTaken(err)
		r.tellMissingCopy(f, err)
		return
	}
	f.memory.helmWritten = helmState(record)
}

// tellMissingCopy tells why helm does not show a revision. That the cluster can't be reached is told elsewhere.
func (r *Reconciler) tellMissingCopy(f *facts, err error) {
	outlook := "it is tried again"
	if _, tooLarge := errors.AsType[*helmrelease.CopyTooLargeError](err); tooLarge {
		f.memory.helmTooLarge, outlook = f.record().Helm.Secret(), "helm does not show this revision"
	} else if !isAnswer(err) {
		return
	}
	r.Recorder.Eventf(f.installation, nil, "Warning", kubermaticv1.ReasonFailed, "WriteRelease",
		"the Helm release's copy in the user cluster could not be written, %s: %v", outlook, err)
}

// claimName shows which release name the installation has as soon as its record does: others may not take it from then on.
func claimName(f *facts, helm *helmrelease.Release) {
	if helm != nil {
		f.installation.Status.Release = releaseState(helm)
	}
}

func releaseState(helm *helmrelease.Release) *kubermaticv1.HelmReleaseState {
	return &kubermaticv1.HelmReleaseState{Name: helm.Name, Revision: int32(helm.Revision), Status: helm.Status}
}

// copyStands says whether the copy is as it was written, as far as the list shows that installations of the cluster share.
func (r *Reconciler) copyStands(ctx context.Context, f *facts) bool {
	if f.memory.helmVersion == "" || r.askedFor(f) {
		return false
	}
	helm := f.record().Helm
	survey := r.views.surveyOf(f.place(), r.Options.DriftInterval)
	version, err := survey.SecretVersion(ctx, f.target(), helm.Namespace, helm.Secret())
	return err == nil && version == f.memory.helmVersion
}

// helmState changes whenever the copy has something new to say.
func helmState(record *revision.Record) string {
	helm, hooking := record.Helm, record.HooksState
	return fmt.Sprint(helm.Namespace, "/", helm.Secret(), helm.Status, helm.Description, hooking.Event, hooking.Ended)
}

// writeCopy makes what a release that is gone on with had before ours first, so that it becomes superseded with the rest.
func (r *Reconciler) writeCopy(ctx context.Context, f *facts) error {
	record, err := r.readToShow(ctx, f)
	if err != nil {
		return err
	}
	if record.Helm.TakenOver && f.memory.helmWritten != helmState(record) {
		if err := helmrelease.Adopt(ctx, r.helmPlace(f, record.Helm.Namespace), record.Helm, f.owner); err != nil {
			return err
		}
	}
	secrets := f.connection.Secrets.Secrets(record.Helm.Namespace)
	isNew := f.saved != nil && f.memory.helmVersion == "" // it was recorded as applied a moment ago, and never shown
	f.memory.helmVersion, err = helmrelease.Write(ctx, secrets, record.HelmObject(), isNew)
	return err
}

// readToShow gives the record whole, as this pass wrote it or as the seed has it, with what its hooks did since.
func (r *Reconciler) readToShow(ctx context.Context, f *facts) (*revision.Record, error) {
	if f.saved != nil && f.saved.Revision == f.record().Revision {
		f.saved.Follow(f.record())
		return f.saved, nil
	}
	return r.readWhole(ctx, f, f.record())
}

// releaseNameFree refuses a release name that another installation of the cluster has in the same namespace already.
func (r *Reconciler) releaseNameFree(ctx context.Context, f *facts) loop.Outcome {
	name, spec := releaseName(f), f.installation.Spec
	if name == "" {
		return nil
	}
	list := &kubermaticv1.AddonInstallationList{} // shared with the cache, and only read
	err := r.Client.List(ctx, list, cluster.InstallationsOf(f.cluster.Ref), client.MatchingFields{indexRelease: name},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return failed(err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if older(other, f.installation) && other.Spec.TargetNamespace == spec.TargetNamespace {
			return releaseTaken(other.Name, name, spec.TargetNamespace)
		}
	}
	return nil
}

// releaseTaken names the way out, which is no change of the installation: its targetNamespace can't be changed.
func releaseTaken(by, name, namespace string) loop.Outcome {
	return loop.Waiting{
		Condition: kubermaticv1.ConditionApplied, Reason: kubermaticv1.ReasonReleaseNameTaken, Recheck: refusedRecheck,
		Message: fmt.Sprintf("installation %q has Helm release %q in namespace %q: make this one anew with another name or "+
			"targetNamespace, or set another template.helm.releaseName in the catalogue", by, name, namespace),
	}
}

// older says which of two installations that want the same keeps it: the one made first, then the first by name. Of one
// installation with itself it says no.
func older(a, b *kubermaticv1.AddonInstallation) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}
