package installer

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/survey"
)

// fightRepairs is how many repairs of one object in a row mean that somebody else keeps changing
// it.
const fightRepairs = 5

// repairCount counts an object's repairs, each within two intervals of the one before.
type repairCount struct {
	count int
	last  time.Time
}

// surveyDue says whether the objects are to be compared with the record in this pass.
func (p *Pass) surveyDue() bool {
	return !p.Now.Before(p.State.nextSurvey) || p.IsAskedFor()
}

// IsAskedFor says whether annotation reconcile-at asks for a comparison now.
func (p *Pass) IsAskedFor() bool {
	return p.Asked.ReconcileAt != p.State.reconcileAt
}

// RepairDrift compares the user cluster with what was applied, and puts back what differs.
func (p *Pass) RepairDrift(ctx context.Context) *Stop {
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
		return p.remoteFailed(AboutHealth, err)
	}
	found := &Comparison{}
	if p.Decision.ShowsDrift {
		found.Drifted, drift = keysOf(drift), nil
	}
	var outcome *Stop
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

// separateFights tells objects that were repaired again and again, since somebody else wants them
// otherwise, from those that are to be repaired.
func (p *Pass) separateFights(drift []survey.Drift) (fights []ownership.Key, wanted []survey.Drift) {
	for _, one := range drift {
		if p.State.repairs[one.Key].count >= fightRepairs {
			fights = append(fights, one.Key)
			continue
		}
		wanted = append(wanted, one)
	}
	return fights, wanted
}

func (p *Pass) repair(ctx context.Context, drift []survey.Drift) *Stop {
	if len(drift) == 0 {
		return nil
	}
	record, objects, err := p.recordedObjects(ctx)
	if err != nil {
		return p.doubted(err)
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
		return p.remoteFailed(AboutHealth, err)
	}
	p.Misbehaved = fixed.Misbehaved
	isShared := slices.EqualFunc(record.Shared, fixed.Shared, sameUse)
	if !isShared {
		p.reportShared(record.Shared, fixed.Shared, fixed.Inventory)
	}
	if !isShared || !reflect.DeepEqual(record.Inventory, fixed.Inventory) { // what was put back as it was is on record already
		record.Inventory, record.Shared = fixed.Inventory, fixed.Shared
		if err := p.saveAmended(ctx, record); err != nil {
			return p.doubted(err)
		}
	}
	notes, noted := slices.Concat(fixed.Refused, fixed.Waiting), map[ownership.Key]bool{}
	for _, note := range notes {
		noted[note.Key] = true
	}
	for _, entry := range fixed.Shared { // left to another, and not put back
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
		p.State.repairPasses = min(p.State.repairPasses+1, maxPasses)
		p.Obstacle = apply.ObstacleOf(notes)
		return &Stop{
			About: AboutApply, Reason: notes[0].Reason, Cause: notes[0].Cause, Message: TextOf(notes),
			Recheck: repairWait(notes, p.State.repairPasses),
		}
	}
	p.State.repairPasses = 0
	return nil
}

// repairWait is how long to wait after so many passes in a row in which not everything could be put
// back. What waits for a definition or a namespace of the user cluster is tried again soon; a kind
// that others bring may stay away for good.
func repairWait(notes []calls.Note, passes int) time.Duration {
	waits := func(reasons ...string) bool {
		return slices.ContainsFunc(notes, func(note calls.Note) bool { return slices.Contains(reasons, note.Reason) })
	}
	switch {
	case waits(v1.ReasonWaitingForStage, v1.ReasonNamespaceTerminating):
		return backoff.After(passes, firstRecheck, SlowestRecheck)
	case waits(v1.ReasonKindNotServed):
		return backoff.After(passes, firstRecheck, SlowestRetry)
	}
	return RefusedRecheck
}

// counted counts on while repairs come within two intervals of each other, with the jitter of one.
func counted(before repairCount, now time.Time, interval time.Duration) repairCount {
	if now.Sub(before.last) > 2*interval+interval/5 {
		return repairCount{count: 1, last: now}
	}
	return repairCount{count: before.count + 1, last: now}
}

// sameContent keeps the counts of objects whose content is as it was: a new revision of others ends
// no fight about them.
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
