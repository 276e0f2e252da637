package installer

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/install/helmrelease"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// NextRelease is the Helm release after a change, without the chart's metadata; nil for go-template.
func (p *Run) NextRelease(name string) *helmrelease.Release {
	if name == "" {
		return nil
	}
	now := p.stamp()
	helm := &helmrelease.Release{
		Name: name, Namespace: p.Asked.TargetNamespace, Revision: 1, FirstDeployed: now, LastDeployed: now,
	}
	if previous := p.previousRelease(); previous != nil && previous.Name == helm.Name {
		helm.Revision, helm.FirstDeployed, helm.Adopted = previous.Revision+1, previous.FirstDeployed, previous.Adopted
	}
	if p.Foreign != nil {
		helm.Revision, helm.Adopted = max(helm.Revision, p.Foreign.Revision+1), true
		if first := p.Foreign.FirstDeployed; !first.IsZero() {
			helm.FirstDeployed = metav1.Time{Time: first}.Rfc3339Copy()
		}
	}
	return helm
}

func (p *Run) previousRelease() *helmrelease.Release {
	if record := p.Record(); record != nil {
		return record.Helm
	}
	return nil
}

// previousRelease is the Helm release to delete from the user cluster with the next revision: the method or name changed,
// or the one to delete before still exists.
func previousRelease(previous *revision.Record, next *helmrelease.Release) *helmrelease.Release {
	switch {
	case previous == nil:
		return nil
	case previous.Helm == nil || next != nil && next.Name == previous.Helm.Name && next.Namespace == previous.Helm.Namespace:
		return previous.Previous
	}
	return &helmrelease.Release{Name: previous.Helm.Name, Namespace: previous.Helm.Namespace}
}

// dropPreviousRelease removes the Secrets of the previous Helm release: `helm uninstall` of it would delete our objects.
func (p *Run) dropPreviousRelease(ctx context.Context) *loop.Outcome {
	previous := p.Record().Previous
	if previous == nil {
		return nil
	}
	if err := helmrelease.Remove(ctx, p.Connection.Secrets.Secrets(previous.Namespace), previous.Name, p.Owner); err != nil {
		return p.remoteFailed(v1.ConditionApplied, err)
	}
	return p.Amend(ctx, func(kept *revision.Record) { kept.Previous = nil })
}

// WriteRelease writes the copy that `helm list` shows. The seed's record is authoritative: a failed write is reported
// and never fails the revision. It is retried, except if the copy is too large for a Secret.
func (p *Run) WriteRelease(ctx context.Context) *loop.Outcome {
	if outcome := p.followByHand(ctx); outcome != nil {
		return outcome
	}
	p.copyHelm(ctx)
	if p.awaitsCopy() {
		return nil // the previous release stays until the new one exists
	}
	return p.dropPreviousRelease(ctx)
}

// awaitsCopy says whether the user cluster does not show the Helm release yet. One that is too large is never shown.
func (p *Run) awaitsCopy() bool {
	helm := p.Record().Helm
	return helm != nil && p.State.helmWritten == "" && p.State.helmTooLarge != helm.Secret()
}

// copyHelm writes the copy if it differs from the known state in the user cluster, or may have been changed there.
func (p *Run) copyHelm(ctx context.Context) {
	record := p.Record()
	if record.Helm == nil {
		p.Release = &helmrelease.Release{}
		return
	}
	p.claimName(record.Helm)
	if p.State.helmTooLarge == record.Helm.Secret() {
		return
	}
	if p.State.helmWritten == helmState(record) && (!p.surveyDue() || p.isCopyUnchanged(ctx)) {
		return
	}
	if err := p.writeCopy(ctx); err != nil {
		p.State.helmWritten = ""
		p.State.copyNumberTaken = isNumberTaken(err)
		p.reportMissingCopy(err)
		return
	}
	p.State.helmWritten = helmState(record)
}

// reportMissingCopy says why helm does not show a revision. An unreachable cluster is reported elsewhere.
func (p *Run) reportMissingCopy(err error) {
	outlook := "Trellis tries again"
	if _, tooLarge := errors.AsType[*helmrelease.CopyTooLargeError](err); tooLarge {
		p.State.helmTooLarge, outlook = p.Record().Helm.Secret(), "helm does not show this revision"
	} else if !calls.IsAnswer(err) {
		return
	}
	p.report(Event{Warning: true, Reason: v1.ReasonFailed, Action: "WriteRelease"},
		"the Helm release's copy in the user cluster could not be written; %s: %v", outlook, err)
}

// claimName shows the release name as soon as it is on record: from then on other installations may not use it.
func (p *Run) claimName(helm *helmrelease.Release) {
	if helm != nil {
		p.Release = &helmrelease.Release{Name: helm.Name, Revision: helm.Revision, Status: helm.Status}
	}
}

// isCopyUnchanged says whether the copy is unchanged since it was written, in the list that installations of the cluster
// share.
func (p *Run) isCopyUnchanged(ctx context.Context) bool {
	if p.State.helmVersion == "" || p.IsAskedFor() {
		return false
	}
	helm := p.Record().Helm
	survey := p.view().survey.Load()
	version, err := survey.SecretVersion(ctx, p.target(), helm.Namespace, helm.Secret())
	return err == nil && version == p.State.helmVersion
}

// helmState changes with the content of the copy.
func helmState(record *revision.Record) string {
	helm, hooking := record.Helm, record.HooksState
	return fmt.Sprint(helm.Namespace, "/", helm.Secret(), helm.Status, helm.Description, hooking.Event, hooking.Ended)
}

// writeCopy writes the copies of an adopted release's earlier revisions first, so that they are superseded like our
// own.
func (p *Run) writeCopy(ctx context.Context) error {
	record, err := p.readToShow(ctx)
	if err != nil {
		return err
	}
	if record.Helm.Adopted && p.State.helmWritten != helmState(record) {
		if err := helmrelease.Adopt(ctx, p.helmPlace(record.Helm.Namespace), record.Helm, p.Owner); err != nil {
			return err
		}
	}
	secrets := p.Connection.Secrets.Secrets(record.Helm.Namespace)
	isNew := p.saved != nil && p.State.helmVersion == "" // it was just recorded as applied, and never shown
	p.State.helmVersion, err = helmrelease.Write(ctx, secrets, record.HelmObject(), isNew)
	return err
}

// readToShow returns the complete record, as this reconciliation wrote it or as the seed has it, with the current state
// of its hooks.
func (p *Run) readToShow(ctx context.Context) (*revision.Record, error) {
	if p.saved != nil && p.saved.Revision == p.Record().Revision {
		p.saved.CopyProgress(p.Record())
		return p.saved, nil
	}
	return p.ReadWhole(ctx, p.Record())
}

func (p *Run) helmPlace(namespace string) helmrelease.Place {
	return helmrelease.Place{
		Metadata: p.Connection.Metadata, Secrets: p.Connection.Secrets.Secrets(namespace), Namespace: namespace,
		NameOf: p.nameOf(), Names: p.view().helmNames,
	}
}
