package addoninstallation

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/release"
)

// fightRepairs is how many repairs of one object in a row mean that somebody else keeps changing it.
const fightRepairs = 5

// repairCount counts an object's repairs, each within two intervals of the one before.
type repairCount struct {
	count int
	last  time.Time
}

// surveyDue says whether the objects are to be looked at in this pass.
func (r *Reconciler) surveyDue(f *facts) bool {
	return !f.now.Before(f.memory.nextSurvey) || r.askedFor(f)
}

// askedFor says whether annotation reconcile-at asks for a look now.
func (r *Reconciler) askedFor(f *facts) bool {
	return f.installation.Annotations[kubermaticv1.AnnotationReconcileAt] != f.memory.reconcileAt
}

// repairDrift looks whether the user cluster still has what was applied, and puts back what differs.
func (r *Reconciler) repairDrift(ctx context.Context, f *facts) loop.Outcome {
	if !r.surveyDue(f) {
		return nil
	}
	survey := r.views.surveyOf(f.place(), r.Options.DriftInterval)
	if r.askedFor(f) || f.memory.surveyAnew {
		survey = r.views.newSurvey(f.place(), r.Options.DriftInterval)
	}
	if r.askedFor(f) {
		f.memory.repairs = map[apply.Key]repairCount{}
	}
	drift, err := survey.Drifted(ctx, f.target(), f.owner, f.record().Inventory)
	if err != nil {
		return r.remoteFailed(f, kubermaticv1.ConditionHealthy, err)
	}
	if f.once() {
		f.shown, drift = keysOf(drift), nil
	}
	if outcome := r.repair(ctx, f, r.withoutFights(f, drift)); outcome != nil {
		return outcome
	}
	f.drifted, f.memory.surveyAnew = true, false
	f.memory.nextSurvey = f.now.Add(max(survey.Due(), time.Second))
	f.memory.reconcileAt, f.memory.refreshed = f.installation.Annotations[kubermaticv1.AnnotationReconcileAt], false
	if len(f.repaired) > 0 {
		f.memory.health = nil
	}
	return nil
}

// rest ends a pass that has nothing more to do before the next look.
func (r *Reconciler) rest(_ context.Context, f *facts) loop.Outcome {
	return loop.Done{Recheck: max(f.memory.nextSurvey.Sub(f.now), firstLook)}
}

func keysOf(drift []apply.Drift) []apply.Key {
	keys := make([]apply.Key, len(drift))
	for i, one := range drift {
		keys[i] = one.Key
	}
	return keys
}

// withoutFights leaves out objects that were repaired again and again: somebody else wants them otherwise.
func (r *Reconciler) withoutFights(f *facts, drift []apply.Drift) []apply.Drift {
	var wanted []apply.Drift
	for _, one := range drift {
		if f.memory.repairs[one.Key].count >= fightRepairs {
			f.fights = append(f.fights, one.Key)
			continue
		}
		wanted = append(wanted, one)
	}
	return wanted
}

func (r *Reconciler) repair(ctx context.Context, f *facts, drift []apply.Drift) loop.Outcome {
	if len(drift) == 0 {
		return nil
	}
	record, objects, err := r.recordedObjects(ctx, f)
	if err != nil {
		return failed(err)
	}
	fixed, err := apply.Repair(ctx, f.target(), f.owner, drift, apply.Applied{
		Objects: objects, Inventory: record.Inventory, Adopt: f.adopts(), Release: releaseMarks(record),
		NameOf:   r.namesIn(f.installation.Namespace, f.owner.ClusterUID),
		Siblings: r.siblings(f), Shared: record.Shared,
	})
	if errors.Is(err, errHandover) {
		return handover()
	}
	if err != nil {
		return r.remoteFailed(f, kubermaticv1.ConditionHealthy, err)
	}
	f.misbehaved = fixed.Misbehaved
	isShared := slices.EqualFunc(record.Shared, fixed.Shared, sameUse)
	if !isShared {
		f.tellShared(record.Shared, fixed.Shared, fixed.Inventory)
	}
	if !isShared || !reflect.DeepEqual(record.Inventory, fixed.Inventory) { // what was put back as it was is on record already
		record.Inventory, record.Shared = fixed.Inventory, fixed.Shared
		if err := r.keep(ctx, f, record); err != nil {
			return failed(err)
		}
	}
	notes, noted := slices.Concat(fixed.Refused, fixed.Waiting), map[apply.Key]bool{}
	for _, note := range notes {
		noted[note.Key] = true
	}
	for _, entry := range fixed.Shared { // left to another, and not put back
		noted[entry.Key] = true
	}
	for _, one := range drift {
		if noted[one.Key] || one.Reason == apply.DriftLeft {
			continue
		}
		f.repaired = append(f.repaired, one.Key)
		f.memory.repairs[one.Key] = counted(f.memory.repairs[one.Key], f.now, r.Options.DriftInterval)
	}
	if len(notes) > 0 {
		f.memory.repairLooks = min(f.memory.repairLooks+1, maxLooks)
		f.obstacle = apply.ObstacleOf(notes)
		return loop.Waiting{
			Condition: kubermaticv1.ConditionApplied, Reason: notes[0].Reason, Message: noteText(notes),
			Recheck: repairWait(notes, f.memory.repairLooks),
		}
	}
	f.memory.repairLooks = 0
	return nil
}

// repairWait is how long to wait after so many looks in a row at which not everything could be put back. What waits for a
// definition or a namespace of the user cluster is looked at soon; a kind that others bring may stay away for good.
func repairWait(notes []apply.Note, looks int) time.Duration {
	waits := func(reasons ...string) bool {
		return slices.ContainsFunc(notes, func(note apply.Note) bool { return slices.Contains(reasons, note.Reason) })
	}
	switch {
	case waits(kubermaticv1.ReasonWaitingForStage, kubermaticv1.ReasonNamespaceTerminating):
		return loop.Backoff(int32(looks), firstLook, slowestLook)
	case waits(kubermaticv1.ReasonKindNotServed):
		return loop.Backoff(int32(looks), firstLook, slowestRetry)
	}
	return refusedRecheck
}

// counted counts on while repairs come within two intervals of each other, with the jitter of one.
func counted(before repairCount, now time.Time, interval time.Duration) repairCount {
	if now.Sub(before.last) > 2*interval+interval/5 {
		return repairCount{count: 1, last: now}
	}
	return repairCount{count: before.count + 1, last: now}
}

// sameContent keeps the counts of objects whose content is as it was: a new revision of others ends no fight about them.
func sameContent(repairs map[apply.Key]repairCount, before, now apply.Inventory) map[apply.Key]repairCount {
	kept, content := map[apply.Key]repairCount{}, map[apply.Key]string{}
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

// recordedObjects reads the record whole: the objects are not kept in memory.
func (r *Reconciler) recordedObjects(ctx context.Context, f *facts) (*release.Record, []*unstructured.Unstructured, error) {
	record, err := r.Records.Load(ctx, f.installation.Namespace, f.owner)
	if err != nil {
		return nil, nil, err
	}
	if record == nil {
		return nil, nil, fmt.Errorf("the release record of %q is gone: edit the installation to have it made anew", f.installation.Name)
	}
	if record.Skipped > 0 {
		f.memory.doubt() // the next pass goes on from the record before
		return nil, nil, fmt.Errorf("the record of revision %d can't be read: %s", record.Skipped, record.Damage)
	}
	objects, err := decodeObjects(record.Objects)
	return record, objects, err
}

// keep writes a changed record in the state that it has, and remembers it: one that is applied without its objects.
func (r *Reconciler) keep(ctx context.Context, f *facts, record *release.Record) error {
	if err := r.save(ctx, f, record); err != nil {
		return err
	}
	f.memory.record = record
	if record.State == release.StateApplied {
		f.memory.record = record.Light()
	}
	return nil
}

// save writes a record in the state that it has: an intent that gets another name is not applied by that.
func (r *Reconciler) save(ctx context.Context, f *facts, record *release.Record) error {
	if record.State == release.StateIntent {
		return r.Records.SaveIntent(ctx, f.installation.Namespace, record)
	}
	return r.Records.SaveApplied(ctx, f.installation.Namespace, record)
}

// amend changes the record, read whole, and writes it back. That of an intent is whole in memory.
func (r *Reconciler) amend(ctx context.Context, f *facts, change func(*release.Record)) error {
	var err error
	amended := *f.record()
	record := &amended
	if record.IsLight() {
		if record, err = r.Records.Load(ctx, f.installation.Namespace, f.owner); err != nil || record == nil {
			return err
		}
	}
	if record.Skipped > 0 {
		f.memory.doubt() // the next pass goes on from the record before
		return fmt.Errorf("the record of revision %d can't be read: %s", record.Skipped, record.Damage)
	}
	change(record)
	return r.keep(ctx, f, record)
}
