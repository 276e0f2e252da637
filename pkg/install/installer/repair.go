package installer

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/survey"
)

// fightRepairs is the number of consecutive repairs of one object after which another client is considered to keep
// changing it.
const fightRepairs = 5

// repairCount counts an object's repairs, each within two intervals of the previous one.
type repairCount struct {
	count int
	last  time.Time
}

// surveyDue says whether this reconciliation compares the objects with the record.
func (p *Run) surveyDue() bool {
	return !p.Now.Before(p.State.nextSurvey) || p.IsAskedFor()
}

// IsAskedFor says whether annotation reconcile-at requests a comparison now.
func (p *Run) IsAskedFor() bool {
	return p.Asked.ReconcileAt != p.State.reconcileAt
}

// RepairDrift compares the user cluster with the applied objects, and repairs differences.
func (p *Run) RepairDrift(ctx context.Context) *loop.Outcome {
	if !p.surveyDue() {
		return nil
	}
	if p.IsAskedFor() || p.State.isSurveyOutdated {
		p.view().newSurvey(p.installer.Interval)
	}
	if p.IsAskedFor() {
		p.State.repairs = map[ownership.Key]repairCount{}
	}
	survey := p.view().survey.Load()
	drift, err := survey.Drifted(ctx, p.target(), p.Owner, p.Record().Inventory)
	if err != nil {
		return p.remoteFailed(v1.ConditionHealthy, err)
	}
	found := &Comparison{}
	if p.Decision.ShowsDrift {
		found.Drifted, drift = keysOf(drift), nil
	}
	var outcome *loop.Outcome
	if found.Newer, drift, outcome = p.leaveNewer(ctx, drift); outcome != nil {
		return outcome
	}
	found.Fights, drift = p.separateFights(drift)
	if outcome := p.repair(ctx, drift); outcome != nil {
		return outcome
	}
	p.Compared, p.State.isSurveyOutdated = found, false
	p.State.nextSurvey = p.Now.Add(max(survey.Due(), time.Second))
	p.State.reconcileAt = p.Asked.ReconcileAt
	if len(p.Repaired) > 0 {
		p.State.health = nil
	}
	return nil
}

func keysOf(drift []survey.Drift) []ownership.Key {
	keys := make([]ownership.Key, len(drift))
	for i, one := range drift {
		keys[i] = one.Key
	}
	return keys
}

// separateFights separates objects that were repaired repeatedly because another client changes them, from those to
// repair.
func (p *Run) separateFights(drift []survey.Drift) (fights []ownership.Key, wanted []survey.Drift) {
	for _, one := range drift {
		if p.State.repairs[one.Key].count >= fightRepairs {
			fights = append(fights, one.Key)
			continue
		}
		wanted = append(wanted, one)
	}
	return fights, wanted
}

func (p *Run) repair(ctx context.Context, drift []survey.Drift) *loop.Outcome {
	if len(drift) == 0 {
		return nil
	}
	record, objects, err := p.recordedObjects(ctx)
	if err != nil {
		return p.recordUnknown(err)
	}
	fixed, err := apply.Repair(ctx, p.target(), p.Owner, keysOf(drift), apply.Applied{
		Objects: objects, Inventory: record.Inventory, Adopt: p.Asked.Adopt, AdoptManagers: p.Asked.AdoptManagers,
		Release: releaseMarks(record), NameOf: p.nameOf(),
		Neighbours: p.neighbours(), Shared: record.Shared, LeftBy: record.LeftBy(),
	})
	p.Taken = append(p.Taken, fixed.Taken...)
	if stop := cmp.Or(handover(err), p.unsaved(err)); stop != nil {
		return stop
	}
	if err != nil {
		return p.remoteFailed(v1.ConditionHealthy, err)
	}
	p.Misbehaved = fixed.Misbehaved
	isShared := slices.EqualFunc(record.Shared, fixed.Shared, sameUse)
	if !isShared {
		p.reportShared(record.Shared, fixed.Shared, fixed.Inventory)
	}
	if !isShared || !reflect.DeepEqual(record.Inventory, fixed.Inventory) { // an object that was restored as it was is on record already
		record.Inventory, record.Shared = fixed.Inventory, fixed.Shared
		if err := p.saveAmended(ctx, record); err != nil {
			return p.recordUnknown(err)
		}
	}
	notes, noted := slices.Concat(fixed.Refused, fixed.Waiting), map[ownership.Key]bool{}
	for _, note := range notes {
		noted[note.Key] = true
	}
	for _, entry := range fixed.Shared { // left to a sibling, and not restored
		noted[entry.Key] = true
	}
	for _, one := range drift {
		if noted[one.Key] || one.Reason == survey.DriftAbandoned {
			continue
		}
		p.Repaired = append(p.Repaired, one.Key)
		p.State.repairs[one.Key] = counted(p.State.repairs[one.Key], p.Now, p.installer.Interval)
	}
	if len(notes) > 0 {
		p.State.repairRuns = min(p.State.repairRuns+1, maxRuns)
		p.Obstacle = apply.ObstacleOf(notes)
		return waitForNotes(notes, repairWait(notes, p.State.repairRuns))
	}
	p.State.repairRuns = 0
	return nil
}

// repairWait is the wait after a number of consecutive reconciliations in which not everything could be restored.
// Repairs that wait for a definition or a namespace of the user cluster are retried soon; a kind that others provide
// may be missing permanently.
func repairWait(notes []calls.Note, runs int) time.Duration {
	waits := func(reasons ...string) bool {
		return slices.ContainsFunc(notes, func(note calls.Note) bool { return slices.Contains(reasons, note.Reason) })
	}
	switch {
	case waits(v1.ReasonWaitingForStage, v1.ReasonNamespaceTerminating):
		return backoff.After(runs, firstRecheck, SlowestRecheck)
	case waits(v1.ReasonKindNotServed):
		return backoff.After(runs, firstRecheck, SlowestRetry)
	}
	return RefusedRecheck
}

// counted continues counting while repairs are within two intervals of each other, plus the jitter of one.
func counted(before repairCount, now time.Time, interval time.Duration) repairCount {
	if now.Sub(before.last) > 2*interval+interval/5 {
		return repairCount{count: 1, last: now}
	}
	return repairCount{count: before.count + 1, last: now}
}

// sameContent keeps the counts of objects with unchanged content: a new revision of other objects ends no fight about
// them.
func sameContent(repairs map[ownership.Key]repairCount, before, now ownership.Inventory) map[ownership.Key]repairCount {
	kept, content := map[ownership.Key]repairCount{}, map[ownership.Key]string{}
	for _, entry := range now {
		content[entry.Key] = entry.Content
	}
	for _, entry := range before {
		next, there := content[entry.Key]
		if repair, counted := repairs[entry.Key]; counted && there && next == entry.Content {
			kept[entry.Key] = repair
		}
	}
	return kept
}
