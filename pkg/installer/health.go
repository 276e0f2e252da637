package installer

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/health"
	"github.com/trellis-addons/trellis/pkg/survey"
)

// standard is what the objects of the record are judged by, for one look.
func (p *Pass) standard() survey.Standard {
	check := p.Record().Health
	if check == nil {
		return survey.Standard{}
	}
	by := survey.Standard{OnlyRules: check.Mode != "" && check.Mode != v1.HealthByWorkloads}
	if len(check.Rules) == 0 {
		return by
	}
	by.Judge = p.installer.Rules.Look(check.Rules)
	for i := range check.Rules {
		rule := &check.Rules[i]
		by.Rules = append(by.Rules, survey.Rule{
			Kind:  schema.FromAPIVersionAndKind(rule.APIVersion, rule.Kind),
			Place: calls.Place{Namespace: rule.Namespace, Name: rule.Name},
		})
	}
	return by
}

// lease that shows the add-on alive, and after what time it does not.
type lease struct {
	calls.Place
	staleAfter time.Duration
}

// lease that counts by the record; nil for none.
func (p *Pass) lease() *lease {
	record := p.Record()
	if record == nil || record.Health == nil || record.Health.Mode != v1.HealthByLease {
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
	return by != nil && p.State.beat.Next(p.Now, by.staleAfter) == 0
}

// lookAtLease adds to the health of objects how the Lease is that counts by the record, if any does.
func (p *Pass) lookAtLease(ctx context.Context, of *survey.Health) error {
	by := p.lease()
	if by == nil {
		return nil
	}
	renewed, err := survey.Renewed(ctx, p.target(), by.Place)
	if err != nil {
		return err
	}
	p.State.beat = p.State.beat.See(renewed, p.Now, by.staleAfter)
	if words, state := p.leaseProblem(by); words != "" {
		of.Add(calls.Note{Key: survey.LeaseKey(by.Place), Reason: state, Message: words})
		return nil
	}
	of.Add()
	return nil
}

// leaseProblem says what is wrong with the Lease, as seen last; nothing: it is renewed.
func (p *Pass) leaseProblem(by *lease) (words, state string) {
	switch beat := p.State.beat; {
	case beat.IsMissing():
		return "it does not exist, or nobody renewed it: the add-on has to, while it works", string(status.NotFoundStatus)
	case beat.IsAwaited():
		return "it was not renewed yet since the version was applied", string(status.InProgressStatus)
	case beat.IsStale(p.Now, by.staleAfter):
		return fmt.Sprintf("it was not renewed for %s", by.staleAfter), v1.ReasonLeaseStale
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
	words, _ := p.leaseProblem(by)
	stop := &Stop{About: AboutHealth, Message: message, Recheck: backoff.After(p.State.unhealthyPasses, firstRecheck, SlowestRecheck)}
	switch {
	case words == "":
		return nil
	case p.State.beat.IsAwaited() && !p.isLate():
		stop.Reason = v1.ReasonProgressing
	case !p.State.beat.IsMissing():
		stop.Reason, stop.Recheck = v1.ReasonLeaseStale, max(p.State.beat.Next(p.Now, by.staleAfter), firstRecheck)
	case p.isLate():
		stop.Reason = v1.ReasonLeaseMissing
	default:
		stop.Reason = v1.ReasonProgressing
	}
	return stop
}
