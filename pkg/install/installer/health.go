package installer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue/health"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/install/survey"
)

// standard has the health rules for the record's objects, for one assessment. A version without objects for its cluster
// has no kinds.
func (p *Run) standard() survey.Standard {
	record := p.Record()
	if record == nil || record.Health == nil {
		return survey.Standard{}
	}
	check := record.Health
	by := survey.Standard{OnlyRules: check.Mode != "" && check.Mode != v1.HealthByWorkloads, Extra: record.Shared}
	if len(check.Rules) == 0 || record.IsEmpty() {
		return by
	}
	by.Evaluator = p.installer.Rules.Look(shareOf(p.Cluster, record), check.Rules)
	for i := range check.Rules {
		rule := &check.Rules[i]
		by.Rules = append(by.Rules, survey.Rule{
			Kind:  schema.FromAPIVersionAndKind(rule.APIVersion, rule.Kind),
			Place: calls.Place{Namespace: rule.Namespace, Name: rule.Name},
		})
	}
	return by
}

// shareOf is the key of the share of time that an installation's rules use: add-ons of Custom catalogues do not use the
// time of those of Core catalogues in the same cluster.
func shareOf(cluster target.Ref, record *revision.Record) string {
	if record.Core {
		return cluster.Key() + "/" + string(v1.CatalogueCore)
	}
	return cluster.Key()
}

// lease proves that the add-on is alive; after a time without renewal it does not.
type lease struct {
	calls.Place
	staleAfter time.Duration
}

// lease is the Lease that the record names; nil if none.
func (p *Run) lease() *lease {
	record := p.Record()
	if record == nil || record.Health == nil || record.Health.Mode != v1.HealthByLease || record.IsEmpty() {
		return nil
	}
	asked := record.Health.Lease
	if asked == nil {
		asked = &v1.HealthLease{}
	}
	by := &lease{calls.Place{Namespace: record.TargetNamespace, Name: cmp.Or(asked.Name, record.Addon)}, health.DefaultStaleAfter}
	if asked.StaleAfter != nil {
		by.staleAfter = asked.StaleAfter.Duration
	}
	return by
}

// isLeaseDue says whether the Lease has to be read.
func (p *Run) isLeaseDue() bool {
	by := p.lease()
	return by != nil && (p.State.beatOf != by.Place || p.State.beat.Next(p.Now, by.staleAfter) == 0)
}

// lookAtLease reads the Lease that the record names, if any.
func (p *Run) lookAtLease(ctx context.Context) error {
	by := p.lease()
	if by == nil {
		return nil
	}
	renewed, err := survey.Renewed(ctx, p.target(), by.Place)
	if err != nil {
		return err
	}
	state := p.State
	if state.beatOf != by.Place {
		state.beat = health.Beat{Awaited: state.beat.Awaited && state.beat.Looked.IsZero()} // the revision was just applied
		state.beatOf = by.Place
	}
	if state.beat.Looked.IsZero() && p.Record().AwaitsProof() { // after a restart, too
		state.beat = health.NewBeat()
	}
	state.beat = state.beat.See(renewed, p.Now, state.Watched, by.staleAfter)
	return nil
}

// withLease is the health of objects, with the Lease as one more object if the record names one.
func (p *Run) withLease(of survey.Health) *survey.Health {
	by := p.lease()
	if by == nil {
		return &of
	}
	of.Total++
	reason, words := p.leaseProblem(by)
	if words == "" {
		of.Healthy++
		return &of
	}
	note := calls.Note{Key: survey.LeaseKey(by.Place), Reason: reason, Message: words}
	of.Unhealthy, of.InProgress = slices.Concat([]calls.Note{note}, of.Unhealthy), true
	return &of
}

// leaseProblem describes the problem with the Lease, as last seen; empty if it is renewed.
func (p *Run) leaseProblem(by *lease) (reason, words string) {
	switch beat := p.State.beat; {
	case beat.IsMissing():
		return string(status.NotFoundStatus), "it does not exist, or was not renewed: the add-on renews it while it works"
	case beat.IsAwaited() && !p.isLate():
		return string(status.InProgressStatus), "it was not renewed yet since the version was applied"
	case beat.IsAwaited(), beat.IsStale(p.Now, by.staleAfter):
		return v1.ReasonLeaseStale, fmt.Sprintf("it was not renewed for %s", p.Now.Sub(beat.Moved).Round(time.Second))
	}
	return "", ""
}

// leaseStop describes the problem with the Lease; nil if the add-on is unhealthy for another reason.
func (p *Run) leaseStop(message string) *loop.Outcome {
	by := p.lease()
	if by == nil {
		return nil
	}
	reason, words := p.leaseProblem(by)
	stop := loop.Wait(v1.ConditionHealthy, v1.ReasonProgressing, message, backoff.After(p.State.unhealthyRuns, firstRecheck, SlowestRecheck))
	switch {
	case words == "":
		return nil
	case reason == v1.ReasonLeaseStale:
		stop.Reason, stop.Recheck = v1.ReasonLeaseStale, SlowestRecheck
	case p.State.beat.IsMissing() && p.isLate():
		stop.Reason = v1.ReasonLeaseMissing
	}
	return stop
}

// evaluatedOtherwise restarts the time in which the objects have to become healthy: the record has new health rules for
// the same objects.
func (p *Run) evaluatedOtherwise() {
	state := p.State
	state.health, state.beat, state.beatOf = nil, health.Beat{}, calls.Place{}
	state.unhealthyRuns, state.brokenSince = 0, p.Now
}
