package installer

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/install/survey"
)

const (
	// firstRecheck is the wait before unhealthy objects are read again; it doubles up to SlowestRecheck.
	firstRecheck = 200 * time.Millisecond
	// SlowestRecheck is the longest wait between two reads of a state that may improve at any time.
	SlowestRecheck = 15 * time.Second
	// assessAllEvery is the number of reconciliations of which one reads all objects again, and not only unhealthy
	// ones.
	assessAllEvery = 4
	// explainFrom is the number of consecutive reconciliations with unhealthy objects after which their pods are read
	// for the reason; objects that start normally are healthy before.
	explainFrom = 4
)

// Assess reads the objects' health until everything works, and again with each comparison.
func (p *Run) Assess(ctx context.Context) *loop.Outcome {
	before := p.State.health
	isWell := before != nil && healthy(before) && !before.IsRunning() && p.Compared == nil
	if isWell && !p.isLeaseDue() {
		p.Health = p.withLease(*before)
		if healthy(p.Health) {
			return nil
		}
	}
	health, err := p.readHealth(ctx, isWell)
	if err != nil {
		return p.remoteFailed(v1.ConditionHealthy, err)
	}
	p.noteHealth(p.withLease(*health))
	if !healthy(health) && (p.State.unhealthyRuns >= explainFrom || p.isLate()) {
		explained := survey.Explain(ctx, p.target(), *health)
		health = &explained
	}
	p.Health, p.State.health = p.withLease(*health), health
	p.State.countRunning(health.IsRunning())
	if outcome := p.recordHealth(ctx, p.Health); outcome != nil {
		return outcome
	}
	if outcome := p.releaseJobs(ctx); outcome != nil {
		return outcome
	}
	if healthy(p.Health) {
		p.State.unhealthyRuns = 0
		return nil
	}
	p.State.unhealthyRuns++
	return p.GiveWay(ctx, p.Unhealthy())
}

// noteHealth records since when previously healthy objects are unhealthy.
func (p *Run) noteHealth(now *survey.Health) {
	switch {
	case healthy(now):
		p.State.brokenSince = time.Time{}
	case p.State.health != nil && p.State.wasHealthy:
		p.State.brokenSince = p.Now
	}
	p.State.wasHealthy = healthy(now)
}

// isLate says whether the time is over in which a revision has to become healthy, or healthy objects have to recover.
func (p *Run) isLate() bool {
	since := p.State.brokenSince
	return p.Record().IsLate(p.State.Watched, p.Now) && (since.IsZero() || p.Now.After(since.Add(p.Record().Timeout.Duration)))
}

// readHealth reads the objects whose health can change, and the Lease; if the objects count as healthy until the next
// comparison, only the Lease.
func (p *Run) readHealth(ctx context.Context, isWell bool) (*survey.Health, error) {
	of := p.State.health
	if !isWell {
		objects, err := p.readObjects(ctx)
		if err != nil {
			return nil, err
		}
		of = &objects
	}
	return of, p.lookAtLease(ctx)
}

// readObjects usually reads only the unhealthy objects. If all were healthy, and are read again with a comparison,
// installations of a cluster share the lists.
func (p *Run) readObjects(ctx context.Context) (survey.Health, error) {
	before, by := p.State.health, p.standard()
	if before != nil && p.Compared == nil && (p.State.unhealthyRuns%assessAllEvery != 0 || healthy(before)) {
		return by.Reassess(ctx, p.target(), p.Owner, p.Record().Inventory, *before)
	}
	if before != nil && p.Compared != nil && healthy(before) {
		by.Shared = p.view().survey.Load()
	}
	return by.Assess(ctx, p.target(), p.Owner, p.Record().Inventory)
}

// recordHealth records at once which Jobs completed, so that their deletion is no drift: a Job may be removed before
// everything else works. Once everything works, it records for strategy Once that nothing more is applied, and for
// revisions that may be rolled back, or restored, that they were healthy.
func (p *Run) recordHealth(ctx context.Context, health *survey.Health) *loop.Outcome {
	finished := health.Finished
	once := healthy(health) && p.Asked.Once && !p.Record().Settled
	proof := healthy(health) && p.Record().AwaitsProof()
	if !once && !proof && !hasNewlyFinished(p.Record().Inventory, finished) {
		return nil
	}
	return p.Amend(ctx, func(kept *revision.Record) {
		kept.Inventory = kept.Inventory.Finish(finished)
		kept.Settled, kept.Healthy = kept.Settled || once, kept.Healthy || proof
	})
}

// releaseJobs gives completed and recorded Jobs the time after which Kubernetes deletes them (apply.GiveTTL). If a call
// fails, the next comparison tries again.
func (p *Run) releaseJobs(ctx context.Context) *loop.Outcome {
	ended := p.Record().Inventory.Ended()
	if len(ended) == 0 {
		return nil
	}
	given, refused, failed := apply.GiveTTL(ctx, p.target(), p.Owner, ended)
	for _, note := range refused {
		p.report(Event{Warning: true, Reason: v1.EventJobKept, Action: "Assess"},
			"%s ended and is not deleted, since the user cluster refuses its ttlSecondsAfterFinished: %s: delete the Job there",
			note.Key, note.Message)
		given = append(given, note.Key)
	}
	if len(given) > 0 {
		stop := p.Amend(ctx, func(kept *revision.Record) { kept.Inventory = kept.Inventory.WithoutTTL(given) })
		if stop != nil {
			return stop
		}
	}
	if failed != nil {
		return p.remoteFailed(v1.ConditionHealthy, failed)
	}
	return nil
}

// hasNewlyFinished says whether an object finished that is not finished in the inventory.
func hasNewlyFinished(inventory ownership.Inventory, finished []ownership.Key) bool {
	ended := map[ownership.Key]bool{}
	for _, key := range finished {
		ended[key] = true
	}
	return slices.ContainsFunc(inventory, func(entry ownership.Entry) bool { return ended[entry.Key] && !entry.Finished })
}

func healthy(health *survey.Health) bool { return health.Healthy == health.Total }

// Failing counts the objects that failed, and those that did not become healthy in time.
func (p *Run) Failing() int {
	if p.isLate() {
		return p.Health.Total - p.Health.Healthy
	}
	return p.Health.Failing
}

// IsHealthy says whether this reconciliation read the objects, and all of them work.
func (p *Run) IsHealthy() bool { return p.Health != nil && healthy(p.Health) }

// Unhealthy says which objects do not work, of those read in this reconciliation.
func (p *Run) Unhealthy() *loop.Outcome {
	health := p.Health
	message := fmt.Sprintf("%d of %d objects are healthy", health.Healthy, health.Total)
	if len(health.Unhealthy) > 0 {
		message += fmt.Sprintf("; %s: %s", health.Unhealthy[0].Key, TextOf(health.Unhealthy))
	}
	if stop := p.leaseStop(message); stop != nil {
		stop.Cause = health.Cause()
		return stop
	}
	reason := v1.ReasonProgressing
	switch {
	case health.Failing > 0:
		reason = v1.ReasonUnhealthy
	case health.Unjudged > 0:
		reason = v1.ReasonRuleFailed
	case p.isLate():
		reason, message = v1.ReasonTimeout, message+fmt.Sprintf("; not healthy within %s", p.Record().Timeout.Duration)
		if p.Record().Atomic && p.Record().LastGood == 0 {
			message += "; there is no earlier revision to go back to, so nothing is undone"
		}
	}
	return &loop.Outcome{
		Kind: loop.Waiting, Condition: v1.ConditionHealthy, Reason: reason, Message: message, Cause: health.Cause(),
		Recheck: backoff.After(p.State.unhealthyRuns, firstRecheck, SlowestRecheck),
	}
}
