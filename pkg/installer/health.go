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
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/health"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/survey"
	"github.com/trellis-addons/trellis/pkg/target"
)

// standard is what the objects of the record are judged by, for one look. What has nothing for its
// cluster has no kind to have objects of.
func (p *Pass) standard() survey.Standard {
	record := p.Record()
	if record == nil || record.Health == nil {
		return survey.Standard{}
	}
	check := record.Health
	by := survey.Standard{OnlyRules: check.Mode != "" && check.Mode != v1.HealthByWorkloads, Besides: record.Shared}
	if len(check.Rules) == 0 || record.IsEmpty() {
		return by
	}
	by.Judge = p.installer.Rules.Look(shareOf(p.Cluster, record), check.Rules)
	for i := range check.Rules {
		rule := &check.Rules[i]
		by.Rules = append(by.Rules, survey.Rule{
			Kind:  schema.FromAPIVersionAndKind(rule.APIVersion, rule.Kind),
			Place: calls.Place{Namespace: rule.Namespace, Name: rule.Name},
		})
	}
	return by
}

// shareOf the time for rules that an installation has a part in: what add-ons of Custom catalogues cost takes
// nothing from those of Core catalogues in the same cluster.
func shareOf(cluster target.Ref, record *revision.Record) string {
	if record.Core {
		return cluster.Key() + "/" + string(v1.CatalogueCore)
	}
	return cluster.Key()
}

// lease that shows the add-on alive, and after what time it does not.
type lease struct {
	calls.Place
	staleAfter time.Duration
}

// lease that counts by the record; nil for none.
func (p *Pass) lease() *lease {
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
func (p *Pass) isLeaseDue() bool {
	by := p.lease()
	return by != nil && (p.State.beatOf != by.Place || p.State.beat.Next(p.Now, by.staleAfter) == 0)
}

// lookAtLease reads the Lease that counts by the record, if any does.
func (p *Pass) lookAtLease(ctx context.Context) error {
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
		state.beat = health.Beat{Awaited: state.beat.Awaited && state.beat.Looked.IsZero()} // of a revision that was applied now
		state.beatOf = by.Place
	}
	if state.beat.Looked.IsZero() && p.Record().AwaitsProof() { // after a restart, too
		state.beat = health.Anew()
	}
	state.beat = state.beat.See(renewed, p.Now, state.Watched, by.staleAfter)
	return nil
}

// withLease is the health of objects, with the Lease as one thing more where one counts.
func (p *Pass) withLease(of survey.Health) *survey.Health {
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

// leaseProblem says what is wrong with the Lease, as seen last; nothing: it is renewed.
func (p *Pass) leaseProblem(by *lease) (reason, words string) {
	switch beat := p.State.beat; {
	case beat.IsMissing():
		return string(status.NotFoundStatus), "it does not exist, or nobody renewed it: the add-on has to, while it works"
	case beat.IsAwaited() && !p.isLate():
		return string(status.InProgressStatus), "it was not renewed yet since the version was applied"
	case beat.IsAwaited(), beat.IsStale(p.Now, by.staleAfter):
		return v1.ReasonLeaseStale, fmt.Sprintf("it was not renewed for %s", p.Now.Sub(beat.Moved).Round(time.Second))
	}
	return "", ""
}

// leaseStop says what is wrong with the Lease; nil where that is not what keeps the add-on from being
// healthy.
func (p *Pass) leaseStop(message string) *Stop {
	by := p.lease()
	if by == nil {
		return nil
	}
	reason, words := p.leaseProblem(by)
	stop := &Stop{
		About: AboutHealth, Reason: v1.ReasonProgressing, Message: message,
		Recheck: backoff.After(p.State.unhealthyPasses, firstRecheck, SlowestRecheck),
	}
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

// judgedOtherwise begins the time anew that the objects have: another judgement of the same objects is on
// record.
func (p *Pass) judgedOtherwise() {
	state := p.State
	state.health, state.beat, state.beatOf = nil, health.Beat{}, calls.Place{}
	state.unhealthyPasses, state.brokenSince = 0, p.Now
}
