package addoninstallation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/removal"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/survey"
)

const (
	// firstLook is the wait before objects that are not healthy yet are looked at again; it doubles up to slowestLook.
	firstLook   = 200 * time.Millisecond
	slowestLook = 15 * time.Second
	// wholeLook is how many looks go by until one is at all objects again, and not only at those that were not healthy.
	wholeLook = 4
	// explainFrom is how many looks in a row found something not healthy when its pods are asked why; what starts well is well before.
	explainFrom = 4
)

// assess looks at the objects' health until everything works, and again with each drift pass.
func (r *Reconciler) assess(ctx context.Context, f *facts) loop.Outcome {
	if health := f.memory.health; health != nil && healthy(health) && !f.drifted {
		f.health = health
		return nil
	}
	health, err := r.look(ctx, f)
	if err != nil {
		return r.remoteFailed(f, kubermaticv1.ConditionHealthy, err)
	}
	if !healthy(&health) && (f.memory.looks >= explainFrom || isLate(f)) {
		health = survey.Explain(ctx, f.target(), health)
	}
	f.health, f.memory.health = &health, &health
	if outcome := r.settle(ctx, f, &health); outcome != nil {
		return outcome
	}
	if healthy(&health) {
		f.memory.looks = 0
		return nil
	}
	f.memory.looks++
	return r.orRollBack(ctx, f, unhealthy(f, &health))
}

// look reads the objects whose health can change; between two looks at all of them, those that were not healthy. Where
// everything was, and is looked at again with a drift pass, installations of a cluster share what they read.
func (r *Reconciler) look(ctx context.Context, f *facts) (survey.Health, error) {
	before := f.memory.health
	if before != nil && !f.drifted && f.memory.looks%wholeLook != 0 {
		return survey.Reassess(ctx, f.target(), f.owner, f.record().Inventory, *before)
	}
	if before != nil && f.drifted && healthy(before) {
		survey := r.views.surveyOf(f.place(), r.Options.DriftInterval)
		return survey.Assess(ctx, f.target(), f.owner, f.record().Inventory)
	}
	return survey.Assess(ctx, f.target(), f.owner, f.record().Inventory)
}

// settle puts on record which Jobs have run to their end, so that their going is no drift: at once, since a Job may be taken
// away before everything else works. Where everything does, it records for strategy Once that nothing more is to be applied, and for
// revisions that may have to give way, or be come back to, that they were healthy once.
func (r *Reconciler) settle(ctx context.Context, f *facts, health *survey.Health) loop.Outcome {
	finished := health.Finished
	once := healthy(health) && f.installation.Spec.ReconcileStrategy == kubermaticv1.ReconcileOnce && !f.record().Settled
	proof := healthy(health) && f.record().AwaitsProof()
	if !once && !proof && !news(f.record().Inventory, finished) {
		return nil
	}
	err := r.amend(ctx, f, func(kept *revision.Record) {
		kept.Inventory = kept.Inventory.Finish(finished)
		kept.Settled, kept.Healthy = kept.Settled || once, kept.Healthy || proof
	})
	if err != nil {
		return failed(err)
	}
	return nil
}

// news says whether an object finished that the inventory doesn't call finished yet.
func news(inventory ownership.Inventory, finished []ownership.Key) bool {
	ended := map[ownership.Key]bool{}
	for _, key := range finished {
		ended[key] = true
	}
	return slices.ContainsFunc(inventory, func(entry ownership.Entry) bool { return ended[entry.Key] && !entry.Finished })
}

func healthy(health *survey.Health) bool { return health.Healthy == health.Total }

// isLate says whether the objects have had the time to become healthy.
func isLate(f *facts) bool {
	return f.now.After(f.record().Time.Add(f.record().Timeout.Duration))
}

// failingObjects counts the objects that failed, and those that did not become healthy in time.
func failingObjects(f *facts) int {
	if isLate(f) {
		return f.health.Total - f.health.Healthy
	}
	return f.health.Failing
}

func unhealthy(f *facts, health *survey.Health) loop.Outcome {
	message := fmt.Sprintf("%d of %d objects are healthy", health.Healthy, health.Total)
	if len(health.Unhealthy) > 0 {
		message += fmt.Sprintf("; %s: %s", health.Unhealthy[0].Key, noteText(health.Unhealthy))
	}
	reason := kubermaticv1.ReasonProgressing
	switch {
	case health.Failing > 0:
		reason = kubermaticv1.ReasonUnhealthy
	case isLate(f):
		reason, message = kubermaticv1.ReasonTimeout, message+fmt.Sprintf("; not healthy within %s", f.record().Timeout.Duration)
		if f.record().Atomic && f.record().LastGood == 0 {
			message += "; there is no earlier revision to go back to, so nothing is undone"
		}
	}
	return loop.Waiting{
		Condition: kubermaticv1.ConditionHealthy, Reason: reason, Message: message,
		Recheck: backoff.After(f.memory.looks, firstLook, slowestLook),
	}
}

// prune removes what earlier revisions had and this one has not, once everything else is healthy.
func (r *Reconciler) prune(ctx context.Context, f *facts) loop.Outcome {
	record := f.record()
	if len(record.Superseded) == 0 {
		return nil
	}
	superseded, err := r.pruned(ctx, f)
	if errors.Is(err, errHandover) {
		return handover()
	}
	if err != nil {
		return failed(err)
	}
	left, notes, err := removal.Prune(ctx, f.target(), superseded, removal.PruneOptions{
		Owner: f.owner, Total: record.SupersededOf,
		Approved: f.installation.Annotations[kubermaticv1.AnnotationPruneApproved], CRDs: record.CRDs.Remove,
	})
	if err != nil {
		return r.remoteFailed(f, kubermaticv1.ConditionApplied, err)
	}
	if len(left) != len(record.Superseded) {
		if err := r.amend(ctx, f, func(kept *revision.Record) { kept.Superseded = left }); err != nil {
			return failed(err)
		}
	}
	if len(notes) == 0 {
		return nil
	}
	return loop.Waiting{
		Condition: kubermaticv1.ConditionApplied, Reason: notes[0].Reason, Message: noteText(notes), Recheck: refusedRecheck,
	}
}
