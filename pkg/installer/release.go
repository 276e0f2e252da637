package installer

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// NextRelease is the Helm release that a change makes, without what its chart says; nil for
// go-template.
func (p *Pass) NextRelease(name string) *helmrelease.Release {
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

func (p *Pass) previousRelease() *helmrelease.Release {
	if record := p.Record(); record != nil {
		return record.Helm
	}
	return nil
}

// formerRelease is the Helm release that the user cluster has to lose with the next revision:
// another method or another name came, or the one that had to go before is still there.
func formerRelease(previous *revision.Record, next *helmrelease.Release) *helmrelease.Release {
	switch {
	case previous == nil:
		return nil
	case previous.Helm == nil || next != nil && next.Name == previous.Helm.Name && next.Namespace == previous.Helm.Namespace:
		return previous.Former
	}
	return &helmrelease.Release{Name: previous.Helm.Name, Namespace: previous.Helm.Namespace}
}

// dropFormerRelease removes the Secrets of a Helm release that this revision no longer is: `helm
// uninstall` of it would delete what is ours.
func (p *Pass) dropFormerRelease(ctx context.Context) *Stop {
	former := p.Record().Former
	if former == nil {
		return nil
	}
	if err := helmrelease.Remove(ctx, p.Connection.Secrets.Secrets(former.Namespace), former.Name, p.Owner); err != nil {
		return p.remoteFailed(AboutApply, err)
	}
	return p.Amend(ctx, func(kept *revision.Record) { kept.Former = nil })
}

// WriteRelease gives the user cluster the copy that `helm list` shows. The seed's record is the
// truth: failing to write the copy is reported and never a failed release; it is tried again, but
// for one that no Secret holds.
func (p *Pass) WriteRelease(ctx context.Context) *Stop {
	if outcome := p.followByHand(ctx); outcome != nil {
		return outcome
	}
	p.copyHelm(ctx)
	if p.awaitsCopy() {
		return nil // the former release stays until the new one is there
	}
	return p.dropFormerRelease(ctx)
}

// awaitsCopy says whether the user cluster does not show the Helm release yet. One that is too
// large it never shows.
func (p *Pass) awaitsCopy() bool {
	helm := p.Record().Helm
	return helm != nil && p.State.helmWritten == "" && p.State.helmTooLarge != helm.Secret()
}

// copyHelm writes the copy where it differs from what the user cluster is known to have, or may
// have been changed there.
func (p *Pass) copyHelm(ctx context.Context) {
	record := p.Record()
	if record.Helm == nil {
		p.Release = &helmrelease.Release{}
		return
	}
	p.claimName(record.Helm)
	if p.State.helmTooLarge == record.Helm.Secret() {
		return
	}
	if p.State.helmWritten == helmState(record) && (!p.surveyDue() || p.copyStands(ctx)) {
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

// reportMissingCopy says why helm does not show a revision. That the cluster can't be reached is
// reported elsewhere.
func (p *Pass) reportMissingCopy(err error) {
	outlook := "it is tried again"
	if _, tooLarge := errors.AsType[*helmrelease.CopyTooLargeError](err); tooLarge {
		p.State.helmTooLarge, outlook = p.Record().Helm.Secret(), "helm does not show this revision"
	} else if !calls.IsAnswer(err) {
		return
	}
	p.report(Event{Warning: true, Reason: v1.ReasonFailed, Action: "WriteRelease"},
		"the Helm release's copy in the user cluster could not be written, %s: %v", outlook, err)
}

// claimName has the release name shown as soon as it is on record: others may not take it from then
// on.
func (p *Pass) claimName(helm *helmrelease.Release) {
	if helm != nil {
		p.Release = &helmrelease.Release{Name: helm.Name, Revision: helm.Revision, Status: helm.Status}
	}
}

// copyStands says whether the copy is as it was written, as far as the list shows that
// installations of the cluster share.
func (p *Pass) copyStands(ctx context.Context) bool {
	if p.State.helmVersion == "" || p.IsAskedFor() {
		return false
	}
	helm := p.Record().Helm
	survey := p.view().survey.Load()
	version, err := survey.SecretVersion(ctx, p.target(), helm.Namespace, helm.Secret())
	return err == nil && version == p.State.helmVersion
}

// helmState changes whenever the copy has something new to say.
func helmState(record *revision.Record) string {
	helm, hooking := record.Helm, record.HooksState
	return fmt.Sprint(helm.Namespace, "/", helm.Secret(), helm.Status, helm.Description, hooking.Event, hooking.Ended)
}

// writeCopy makes what a release that was adopted had before ours first, so that it becomes
// superseded with the rest.
func (p *Pass) writeCopy(ctx context.Context) error {
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
	isNew := p.saved != nil && p.State.helmVersion == "" // it was recorded as applied a moment ago, and never shown
	p.State.helmVersion, err = helmrelease.Write(ctx, secrets, record.HelmObject(), isNew)
	return err
}

// readToShow gives the record whole, as this pass wrote it or as the seed has it, with what its
// hooks did since.
func (p *Pass) readToShow(ctx context.Context) (*revision.Record, error) {
	if p.saved != nil && p.saved.Revision == p.Record().Revision {
		p.saved.CopyProgress(p.Record())
		return p.saved, nil
	}
	return p.ReadWhole(ctx, p.Record())
}

func (p *Pass) helmPlace(namespace string) helmrelease.Place {
	return helmrelease.Place{
		Metadata: p.Connection.Metadata, Secrets: p.Connection.Secrets.Secrets(namespace), Namespace: namespace,
		NameOf: p.nameOf(), Names: p.view().helmNames,
	}
}
