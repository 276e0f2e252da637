package installer

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/survey"
)

const (
	// firstRecheck is the wait before objects that are not healthy yet are read again; it doubles
	// up to SlowestRecheck.
	firstRecheck = 200 * time.Millisecond
	// SlowestRecheck is the longest wait between two reads of what may be better at any time.
	SlowestRecheck = 15 * time.Second
	// assessAllEvery is how many passes go by until one reads all objects again, and not only those
	// that were not healthy.
	assessAllEvery = 4
	// explainFrom is how many passes in a row found something not healthy when its pods are read to
	// say why; what starts well is well before.
	explainFrom = 4
)

// Assess reads the objects' health until everything works, and again with each comparison.
func (p *Pass) Assess(ctx context.Context) *Stop {
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
		return p.remoteFailed(AboutHealth, err)
	}
	p.noteHealth(p.withLease(*health))
	if !healthy(health) && (p.State.unhealthyPasses >= explainFrom || p.isLate()) {
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
		p.State.unhealthyPasses = 0
		return nil
	}
	p.State.unhealthyPasses++
	return p.GiveWay(ctx, p.Unhealthy())
}

// noteHealth keeps since when what was healthy is not.
func (p *Pass) noteHealth(now *survey.Health) {
	switch {
	case healthy(now):
		p.State.brokenSince = time.Time{}
	case p.State.health != nil && p.State.wasHealthy:
		p.State.brokenSince = p.Now
	}
	p.State.wasHealthy = healthy(now)
}

// isLate says whether the objects have had their time: a revision to become healthy, what was healthy
// to become so again.
func (p *Pass) isLate() bool {
	since := p.State.brokenSince
	return p.Record().IsLate(p.State.Watched, p.Now) && (since.IsZero() || p.Now.After(since.Add(p.Record().Timeout.Duration)))
}

// readHealth reads the objects whose health can change, and the Lease; where the objects are well until
// the next comparison, only this.
func (p *Pass) readHealth(ctx context.Context, isWell bool) (*survey.Health, error) {
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

// readObjects reads in most passes only those that were not healthy. Where everything was, and is read
// again with a comparison, installations of a cluster share what they read.
func (p *Pass) readObjects(ctx context.Context) (survey.Health, error) {
	before, by := p.State.health, p.standard()
	if before != nil && p.Compared == nil && (p.State.unhealthyPasses%assessAllEvery != 0 || healthy(before)) {
		return by.Reassess(ctx, p.target(), p.Owner, p.Record().Inventory, *before)
	}
	if before != nil && p.Compared != nil && healthy(before) {
		by.Shared = p.view().survey.Load()
	}
	return by.Assess(ctx, p.target(), p.Owner, p.Record().Inventory)
}

// recordHealth puts on record which Jobs have run to their end, so that their going is no drift: at
// once, since a Job may be removed before everything else works. Where everything does, it
// records for strategy Once that nothing more is to be applied, and for revisions that may have to
// give way, or be come back to, that they were healthy once.
func (p *Pass) recordHealth(ctx context.Context, health *survey.Health) *Stop {
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

// releaseJobs gives Jobs whose end is on record the time after which Kubernetes deletes them (apply.GiveTTL). Where a call fails, the next
// comparison tries again.
func (p *Pass) releaseJobs(ctx context.Context) *Stop {
	ended := p.Record().Inventory.Ended()
	if len(ended) == 0 {
		return nil
	}
	given, refused, failed := apply.GiveTTL(ctx, p.target(), p.Owner, ended)
	for _, note := range refused {
		p.report(Event{Warning: true, Reason: v1.EventJobKept, Action: "Assess"},
			"%s ended and stays: the user cluster refuses to set its ttlSecondsAfterFinished: %s: delete it there", note.Key, note.Message)
		given = append(given, note.Key)
	}
	if len(given) > 0 {
		stop := p.Amend(ctx, func(kept *revision.Record) { kept.Inventory = kept.Inventory.WithoutTTL(given) })
		if stop != nil {
			return stop
		}
	}
	if failed != nil {
		return p.remoteFailed(AboutHealth, failed)
	}
	return nil
}

// hasNewlyFinished says whether an object finished that the inventory doesn't call finished yet.
func hasNewlyFinished(inventory ownership.Inventory, finished []ownership.Key) bool {
	ended := map[ownership.Key]bool{}
	for _, key := range finished {
		ended[key] = true
	}
	return slices.ContainsFunc(inventory, func(entry ownership.Entry) bool { return ended[entry.Key] && !entry.Finished })
}

func healthy(health *survey.Health) bool { return health.Healthy == health.Total }

// Failing counts the objects that failed, and those that did not become healthy in time.
func (p *Pass) Failing() int {
	if p.isLate() {
		return p.Health.Total - p.Health.Healthy
	}
	return p.Health.Failing
}

// IsHealthy says whether the objects were read in this pass, and all of them work.
func (p *Pass) IsHealthy() bool { return p.Health != nil && healthy(p.Health) }

// Unhealthy says what does not work, of what was read in this pass.
func (p *Pass) Unhealthy() *Stop {
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
	return &Stop{
		About: AboutHealth, Reason: reason, Message: message, Cause: health.Cause(),
		Recheck: backoff.After(p.State.unhealthyPasses, firstRecheck, SlowestRecheck),
	}
}
