package revision

import (
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/times"
	"github.com/trellis-addons/trellis/pkg/install/helmrelease"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
)

// Do is the action for an installation.
type Do string

const (
	// Keep leaves the applied revision as it is; drift is repaired.
	Keep Do = "Keep"
	// Once is Keep because strategy Once applies nothing any more.
	Once Do = "Once"
	// GivenUp is Keep because the wanted revision failed before, and an earlier one was restored.
	GivenUp Do = "GivenUp"
	// Hold is Keep because only the record has the wanted content.
	Hold Do = "Hold"
	// Finish continues a recorded intent of the wanted revision, if only the record has its content.
	Finish Do = "Finish"
	// GoBack continues a recorded rollback.
	GoBack Do = "GoBack"
	// CarryOn continues a recorded intent.
	CarryOn Do = "CarryOn"
	// Begin makes a new revision of the wanted state.
	Begin Do = "Begin"
	// GiveWay begins a rollback to the last healthy revision.
	GiveWay Do = "GiveWay"
	// Wait does nothing: the record is not fully applied, and the wanted state is unknown.
	Wait Do = "Wait"
)

// Amendment is a change of the record without a call to the user cluster.
type Amendment string

const (
	// AmendName records the name of another version, or add-on, of the same content.
	AmendName Amendment = "name"
	// AmendEnd records another handling of the deletion of its Cluster.
	AmendEnd Amendment = "end"
	// AmendInputs records other inputs that result in the same objects.
	AmendInputs Amendment = "inputs"
)

// Decision is the action, and its reason. The zero value is none.
type Decision struct {
	Do Do
	// Why is a half-sentence for logs and tests.
	Why string
	// Amend is "" if nothing changes on record.
	Amend Amendment
	// FromRecord says that this process has no rollout of it: the objects are read from the record.
	FromRecord bool
	// Unasked says that no user changed the request: objects that only chance changes stay.
	Unasked bool
	// ShowsDrift says that drift is reported and not repaired, by strategy Once.
	ShowsDrift bool
}

func (d Decision) String() string {
	if d.Do == "" {
		return "undecided"
	}
	text := string(d.Do) + " (" + d.Why + ")"
	if d.FromRecord {
		text += " from the record"
	}
	if d.Unasked {
		text += " unasked"
	}
	if d.Amend != "" {
		text += " amend " + string(d.Amend)
	}
	if d.ShowsDrift && d.Do != Once {
		text += " shows drift"
	}
	return text
}

// IsApplied says that the user cluster should have the record: nothing is rendered or applied.
func (d Decision) IsApplied() bool {
	return d.Do == Keep || d.Do == Once || d.Do == GivenUp || d.Do == Hold
}

// IsBegun says that a recorded intent is applied further, regardless of what could be rendered today.
func (d Decision) IsBegun() bool { return d.Do == GoBack || d.Do == Finish }

// IsUnderWay says that the objects to apply are known: nothing is rendered.
func (d Decision) IsUnderWay() bool { return (d.Do == CarryOn || d.IsBegun()) && !d.FromRecord }

// Repairs says whether drift from a record is repaired: it is applied completely, and the strategy is not Once.
func (d Decision) Repairs(record *Record) bool { return record.IsComplete() && !d.ShowsDrift }

// IsRecorded says that the whole revision is on record: nothing is rendered, refused or recorded.
func (d Decision) IsRecorded() bool { return d.IsApplied() || d.IsUnderWay() || d.IsBegun() }

// Gone says why the wanted content, which the record has, can't be rendered.
type Gone string

const (
	// GoneContent: the catalogue has other content under the version.
	GoneContent Gone = "content"
	// GoneArtifact: the source has something else under the same reference.
	GoneArtifact Gone = "artifact"
	// GoneVersion: the catalogue does not have the version any more.
	GoneVersion Gone = "version"
)

// Wanted is the wanted state of an installation.
type Wanted struct {
	Addon, Version string
	// Gone is "" if it can be rendered. Otherwise the record has it, and everything but its name is unknown.
	Gone Gone
	// Inputs and Asked are the record's Inputs and Wanted.
	Inputs, Asked string
	// OnClusterDeletion is the record's.
	OnClusterDeletion v1.OnClusterDeletion
	// Rendered is the result of the rendering; nil before.
	Rendered *Rendered
}

// Rendered has the parts of the next revision.
type Rendered struct {
	ObjectsDigest string
	Hooks         []hooks.Hook
	Helm          *helmrelease.Release
	// Adopts says that it adopts a foreign Helm release.
	Adopts bool
}

// Observed are the observations of a process in addition to the record.
type Observed struct {
	// Once says that the installation's strategy is Once.
	Once bool
	// ReconcileAt is the value of that annotation; Rerender says that it requests another rendering.
	ReconcileAt string
	Rerender    bool
	// Rollout says that this process has a rollout of the record under way.
	Rollout bool
	// Watched is since when the user cluster answers without a gap; zero: it does not answer.
	Watched, Now time.Time
}

// Decide decides the action for an installation with a record, or nil. Wanted is nil if it is unknown or can't be
// rendered: the installed revision stays, and a rollback continues.
func Decide(record *Record, wanted *Wanted, observed Observed) Decision {
	var decision Decision
	switch {
	case wanted == nil:
		decision = withoutWanted(record, observed)
	case wanted.Gone != "":
		decision = onlyOnRecord(record, wanted.Gone, observed)
	case wanted.Rendered != nil:
		decision = afterRendering(record, wanted)
	default:
		decision = beforeRendering(record, wanted, observed)
	}
	decision.ShowsDrift = record.isOnce(observed)
	return decision
}

// withoutWanted is for reconciliations that ended before any change: the record still applies.
func withoutWanted(record *Record, observed Observed) Decision {
	left, limited := record.TimeLeft(observed.Watched, observed.Now)
	switch {
	case record.IsComplete():
		return Decision{Do: Keep, Why: "the desired state is not available"}
	case limited && left <= 0:
		return Decision{Do: GiveWay, Why: "the intent was not applied in time"}
	case record != nil && record.Rollback != nil && !record.IsApplied():
		return Decision{Do: GoBack, Why: "a rollback needs only its record", FromRecord: !observed.Rollout}
	}
	return Decision{Do: Wait, Why: "no revision is completely applied, and the desired state is not available"}
}

// onlyOnRecord is for wanted content that only the record has. An intent is finished. A withdrawn version is kept
// like any unavailable content.
func onlyOnRecord(record *Record, gone Gone, observed Observed) Decision {
	left, limited := record.TimeLeft(observed.Watched, observed.Now)
	why := "only the record has the desired state"
	switch {
	case record.IsComplete() && gone != GoneVersion:
		return Decision{Do: Hold, Why: why}
	case record == nil, record.IsApplied(), record.Skipped > 0, len(record.Objects) == 0, limited && left <= 0,
		record.Rollback != nil && gone == GoneVersion:
		return withoutWanted(record, observed)
	}
	return Decision{Do: Finish, Why: why, FromRecord: !observed.Rollout}
}

func beforeRendering(record *Record, wanted *Wanted, observed Observed) Decision {
	switch {
	case record == nil:
		return Decision{Do: Begin, Why: "nothing was applied yet"}
	case record.gaveUp(wanted, observed) && record.IsApplied():
		return Decision{Do: GivenUp, Why: "the desired state failed before"}
	case record.gaveUp(wanted, observed):
		return Decision{Do: GoBack, Why: "the desired state failed before", FromRecord: !observed.Rollout}
	case record.isOnce(observed):
		return Decision{Do: Once, Why: "it was ready once"}
	case record.Inputs != wanted.Inputs:
		return Decision{Do: Begin, Why: "the inputs differ", Unasked: record.Skipped == 0 && record.isAsked(wanted)}
	}
	decision := withEqualInputs(record, observed)
	switch {
	case record.Skipped > 0:
	case record.Version != wanted.Version || record.Addon != wanted.Addon:
		decision.Amend = AmendName
	case record.OnClusterDeletion != wanted.OnClusterDeletion:
		decision.Amend = AmendEnd
	}
	return decision
}

func withEqualInputs(record *Record, observed Observed) Decision {
	switch {
	case record.IsComplete():
		return Decision{Do: Keep, Why: "the inputs are those on record"}
	case observed.Rollout:
		return Decision{Do: CarryOn, Why: "its rollout is in progress"}
	case record.Skipped > 0:
		return Decision{Do: Begin, Why: "the newest record can't be read"}
	case observed.Rerender:
		return Decision{Do: Begin, Why: "another rendering is requested"}
	case len(record.Objects) == 0:
		return Decision{Do: Begin, Why: "the intent has no objects"}
	}
	return Decision{Do: CarryOn, Why: "the process ended before it was applied", FromRecord: true}
}

// afterRendering is for Begin, and for decisions that use the record.
func afterRendering(record *Record, wanted *Wanted) Decision {
	rendered := wanted.Rendered
	switch {
	case record == nil:
		return Decision{Do: Begin, Why: "nothing was applied yet"}
	case record.Skipped > 0:
		return Decision{Do: Begin, Why: "the newest record can't be read"}
	case !record.Holds(rendered.ObjectsDigest, rendered.Hooks):
		return Decision{Do: Begin, Why: "the objects differ"}
	case record.IsApplied() && !rendered.Helm.IsSameChart(record.Helm):
		return Decision{Do: Begin, Why: "the chart differs"}
	case record.IsApplied():
		return Decision{Do: Keep, Why: "other inputs give the same objects", Amend: AmendInputs}
	case record.Inputs == wanted.Inputs:
		return Decision{Do: CarryOn, Why: "the intent has these objects"}
	case record.isAsked(wanted) && !rendered.Adopts:
		return Decision{Do: CarryOn, Why: "other inputs give the same objects", Amend: AmendInputs}
	}
	return Decision{Do: Begin, Why: "other inputs were requested"}
}

// gaveUp says whether this revision is the rollback of the wanted one, and no user requested a retry.
func (r *Record) gaveUp(wanted *Wanted, observed Observed) bool {
	return r.Skipped == 0 && r.Rollback != nil && r.Rollback.Inputs == wanted.Inputs && r.Rollback.ReconcileAt == observed.ReconcileAt
}

func (r *Record) isOnce(observed Observed) bool { return r != nil && observed.Once && r.Settled }

// isAsked says whether the users' request is that of this revision, which is no rollback.
func (r *Record) isAsked(wanted *Wanted) bool {
	return r.Rollback == nil && r.Wanted != "" && r.Wanted == wanted.Asked
}

// IsApplied says whether the revision was applied completely.
func (r *Record) IsApplied() bool { return r != nil && r.State == StateApplied }

// IsComplete says whether the revision was applied completely, and is the newest.
func (r *Record) IsComplete() bool { return r.IsApplied() && r.Skipped == 0 }

// TimeLeft is the time until the revision must be applied and healthy. It is limited for atomic revisions, not
// rollbacks, that were never healthy and have a revision to return to. Time in which the user cluster could not be
// watched does not count: an outage, a pause or a restart restarts it.
func (r *Record) TimeLeft(watched, now time.Time) (left time.Duration, limited bool) {
	if r == nil || !r.Atomic || r.Healthy || r.Rollback != nil || r.LastGood == 0 || watched.IsZero() {
		return 0, false
	}
	since := r.began(watched, now)
	if watched.After(since) {
		since = watched
	}
	return since.Add(r.Timeout.Duration).Sub(now), true
}

// IsLate says whether the revision's time to become healthy is over; false without a record.
func (r *Record) IsLate(watched, now time.Time) bool {
	return r != nil && now.After(r.began(watched, now).Add(r.Timeout.Duration))
}

// began is when the revision began. If a clock recorded it that was ahead, the time counts since which the user
// cluster is watched.
func (r *Record) began(watched, now time.Time) time.Time {
	if times.IsAhead(r.Time.Time, now) {
		return watched
	}
	return r.Time.Time
}

// Next is the number of a new revision. An intent that was never applied keeps its number.
func (r *Record) Next() int {
	switch {
	case r == nil:
		return 1
	case r.Skipped > 0:
		return r.Skipped + 1
	case r.IsApplied():
		return r.Revision + 1
	}
	return r.Revision
}

// Good is the revision to which the next one would roll back: this one if it was healthy, or its own LastGood. sure
// is false if this one may have become healthy since.
func (r *Record) Good() (revision int, sure bool) {
	switch {
	case r == nil:
		return 0, true
	case r.IsApplied() && r.Healthy:
		return r.Revision, true
	}
	return r.LastGood, !r.IsApplied()
}

// AwaitsProof says whether the revision's health must still be recorded, for a rollback from it or to it; false while
// hooks have to run.
func (r *Record) AwaitsProof() bool {
	return (r.Atomic || r.Rollback != nil) && !r.Healthy && !r.HasHooks(r.Action.Post())
}
