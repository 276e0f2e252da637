package revision

import (
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/times"
)

// Do is what is to be done about an installation.
type Do string

const (
	// Keep leaves what is applied as it is; drift is repaired.
	Keep Do = "Keep"
	// Once is Keep where strategy Once wants nothing applied any more.
	Once Do = "Once"
	// GivenUp is Keep where what is wanted failed before, and an earlier revision is back.
	GivenUp Do = "GivenUp"
	// Hold is Keep where only the record has what is wanted.
	Hold Do = "Hold"
	// Finish continues a recorded intent of what is wanted, where only the record has that.
	Finish Do = "Finish"
	// GoBack continues a recorded rollback.
	GoBack Do = "GoBack"
	// CarryOn continues a recorded intent.
	CarryOn Do = "CarryOn"
	// Begin makes a new revision of what is wanted.
	Begin Do = "Begin"
	// GiveWay begins a rollback to the revision that was last healthy.
	GiveWay Do = "GiveWay"
	// Wait does nothing: the record is not fully applied, and the wanted state is not known.
	Wait Do = "Wait"
)

// Amendment is what changes on record without a call to the user cluster.
type Amendment string

const (
	// AmendName records the name of another version, or add-on, of the same content.
	AmendName Amendment = "name"
	// AmendContent records which content of the catalogue is installed, for records that don't say.
	AmendContent Amendment = "content"
	// AmendEnd records that something else becomes of it when its Cluster is deleted.
	AmendEnd Amendment = "end"
	// AmendInputs records other inputs that give the same objects.
	AmendInputs Amendment = "inputs"
)

// Decision is what is to be done, and why. The zero value is none.
type Decision struct {
	Do Do
	// Why is a half-sentence for logs and tests.
	Why string
	// Amend is "" where nothing changes on record.
	Amend Amendment
	// FromRecord says that this process has no rollout of it: the objects are read from the record.
	FromRecord bool
	// Unasked says that nobody changed their wish: what only chance changes stays.
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

// IsApplied says that the user cluster is to have the record: nothing is rendered or applied.
func (d Decision) IsApplied() bool {
	return d.Do == Keep || d.Do == Once || d.Do == GivenUp || d.Do == Hold
}

// IsBegun says that a recorded intent is applied further whatever could be made today.
func (d Decision) IsBegun() bool { return d.Do == GoBack || d.Do == Finish }

// IsUnderWay says that the objects to apply are known: nothing is rendered.
func (d Decision) IsUnderWay() bool { return (d.Do == CarryOn || d.IsBegun()) && !d.FromRecord }

// Repairs says whether drift from a record is repaired: it is applied to its end, and the
// strategy is not Once.
func (d Decision) Repairs(record *Record) bool { return record.IsComplete() && !d.ShowsDrift }

// IsRecorded says that the whole revision is on record: nothing is rendered, refused or recorded.
func (d Decision) IsRecorded() bool { return d.IsApplied() || d.IsUnderWay() || d.IsBegun() }

// Gone says why nothing can be made of what is wanted, which the record has.
type Gone string

const (
	// GoneContent: the catalogue has other content under the version.
	GoneContent Gone = "content"
	// GoneArtifact: the source has something else under the same reference.
	GoneArtifact Gone = "artifact"
	// GoneVersion: the catalogue does not have the version any more.
	GoneVersion Gone = "version"
)

// Wanted is what an installation is to be.
type Wanted struct {
	Addon, Version string
	// Content is the record's Content that is meant; "" where nobody says.
	Content string
	// Gone is "" where it can be made. Else the record has it, and the rest but its name is not
	// known.
	Gone Gone
	// Inputs and Asked are the record's Inputs and Wanted.
	Inputs, Asked string
	// OnClusterDeletion is the record's.
	OnClusterDeletion v1.OnClusterDeletion
	// Rendered is what came of them; nil before.
	Rendered *Rendered
}

// Rendered is what the next revision would have.
type Rendered struct {
	ObjectsDigest string
	Hooks         []hooks.Hook
	Helm          *helmrelease.Release
	// Adopts says that it adopts a Helm release of somebody else.
	Adopts bool
}

// Seen is what a process knows besides the record.
type Seen struct {
	// Once says that the installation's strategy is Once.
	Once bool
	// ReconcileAt is the value of that annotation; Anew says that it asks for another rendering.
	ReconcileAt string
	Anew        bool
	// Rollout says that this process has a rollout of the record under way.
	Rollout bool
	// Watched is since when the user cluster answers without a gap; zero: it does not.
	Watched, Now time.Time
}

// Decide says what to do about an installation with a record, or nil. Wanted is nil if it can't be
// known or rendered: what is installed stays, and a rollback continues.
func Decide(record *Record, wanted *Wanted, seen Seen) Decision {
	var decision Decision
	switch {
	case wanted == nil:
		decision = withoutWanted(record, seen)
	case wanted.Gone != "":
		decision = onlyOnRecord(record, wanted.Gone, seen)
	case wanted.Rendered != nil:
		decision = afterRendering(record, wanted)
	default:
		decision = beforeRendering(record, wanted, seen)
	}
	decision.ShowsDrift = record.isOnce(seen)
	return decision
}

// withoutWanted is for passes that ended before any change: the record still applies.
func withoutWanted(record *Record, seen Seen) Decision {
	left, limited := record.TimeLeft(seen.Watched, seen.Now)
	switch {
	case record.IsComplete():
		return Decision{Do: Keep, Why: "what is wanted can't be had"}
	case limited && left <= 0:
		return Decision{Do: GiveWay, Why: "the intent was not applied in time"}
	case record != nil && record.Rollback != nil && !record.IsApplied():
		return Decision{Do: GoBack, Why: "a rollback needs nothing but its record", FromRecord: !seen.Rollout}
	}
	return Decision{Do: Wait, Why: "nothing is applied to its end, and what is wanted can't be had"}
}

// onlyOnRecord is for what is wanted and nothing but the record has. What it begins is finished. A
// version that was withdrawn is kept like anything that can't be had.
func onlyOnRecord(record *Record, gone Gone, seen Seen) Decision {
	left, limited := record.TimeLeft(seen.Watched, seen.Now)
	why := "only the record has what is wanted"
	switch {
	case record.IsComplete() && gone != GoneVersion:
		return Decision{Do: Hold, Why: why}
	case record == nil, record.IsApplied(), record.Skipped > 0, len(record.Objects) == 0, limited && left <= 0,
		record.Rollback != nil && gone == GoneVersion:
		return withoutWanted(record, seen)
	}
	return Decision{Do: Finish, Why: why, FromRecord: !seen.Rollout}
}

func beforeRendering(record *Record, wanted *Wanted, seen Seen) Decision {
	switch {
	case record == nil:
		return Decision{Do: Begin, Why: "nothing was applied yet"}
	case record.gaveUp(wanted, seen) && record.IsApplied():
		return Decision{Do: GivenUp, Why: "what is wanted failed before"}
	case record.gaveUp(wanted, seen):
		return Decision{Do: GoBack, Why: "what is wanted failed before", FromRecord: !seen.Rollout}
	case record.isOnce(seen):
		return Decision{Do: Once, Why: "it was ready once"}
	case record.Inputs != wanted.Inputs:
		return Decision{Do: Begin, Why: "the inputs are others", Unasked: record.Skipped == 0 && record.isAsked(wanted)}
	}
	decision := withEqualInputs(record, seen)
	switch {
	case record.Skipped > 0:
	case record.Version != wanted.Version || record.Addon != wanted.Addon:
		decision.Amend = AmendName
	case wanted.Content != "" && record.Content != wanted.Content:
		decision.Amend = AmendContent
	case record.OnClusterDeletion != wanted.OnClusterDeletion:
		decision.Amend = AmendEnd
	}
	return decision
}

func withEqualInputs(record *Record, seen Seen) Decision {
	switch {
	case record.IsComplete():
		return Decision{Do: Keep, Why: "the inputs are those on record"}
	case seen.Rollout:
		return Decision{Do: CarryOn, Why: "its rollout is under way"}
	case record.Skipped > 0:
		return Decision{Do: Begin, Why: "the newest record can't be read"}
	case seen.Anew:
		return Decision{Do: Begin, Why: "another rendering is asked for"}
	case len(record.Objects) == 0:
		return Decision{Do: Begin, Why: "the intent has no objects"}
	}
	return Decision{Do: CarryOn, Why: "the process ended before it was applied", FromRecord: true}
}

// afterRendering is for Begin, and for what is taken from the record.
func afterRendering(record *Record, wanted *Wanted) Decision {
	rendered := wanted.Rendered
	switch {
	case record == nil:
		return Decision{Do: Begin, Why: "nothing was applied yet"}
	case record.Skipped > 0:
		return Decision{Do: Begin, Why: "the newest record can't be read"}
	case !record.Holds(rendered.ObjectsDigest, rendered.Hooks):
		return Decision{Do: Begin, Why: "the objects are others"}
	case record.IsApplied() && !rendered.Helm.IsSameChart(record.Helm):
		return Decision{Do: Begin, Why: "the chart is another"}
	case record.IsApplied():
		return Decision{Do: Keep, Why: "other inputs give the same objects", Amend: AmendInputs}
	case record.Inputs == wanted.Inputs:
		return Decision{Do: CarryOn, Why: "the intent has these objects"}
	case record.isAsked(wanted) && !rendered.Adopts:
		return Decision{Do: CarryOn, Why: "other inputs give the same objects", Amend: AmendInputs}
	}
	return Decision{Do: Begin, Why: "somebody asked for other inputs"}
}

// gaveUp says whether this revision is the rollback of what is wanted, and nobody asked to retry.
func (r *Record) gaveUp(wanted *Wanted, seen Seen) bool {
	return r.Skipped == 0 && r.Rollback != nil && r.Rollback.Inputs == wanted.Inputs && r.Rollback.ReconcileAt == seen.ReconcileAt
}

func (r *Record) isOnce(seen Seen) bool { return r != nil && seen.Once && r.Settled }

// isAsked says whether people's wish is that of this revision, which is no rollback.
func (r *Record) isAsked(wanted *Wanted) bool {
	return r.Rollback == nil && r.Wanted != "" && r.Wanted == wanted.Asked
}

// IsApplied says whether the revision was applied to its end.
func (r *Record) IsApplied() bool { return r != nil && r.State == StateApplied }

// IsComplete says whether the revision was applied to its end, and is the newest.
func (r *Record) IsComplete() bool { return r.IsApplied() && r.Skipped == 0 }

// TimeLeft is the time until the revision must be applied and healthy. It is limited for atomic
// revisions, not rollbacks, that were never healthy and have a revision to return to. Time in which
// the user cluster could not be watched does not count: an outage, a pause or a restart begins it
// anew.
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

// IsLate says whether the revision has had its time to become healthy. Without a record nothing is
// known of that.
func (r *Record) IsLate(watched, now time.Time) bool {
	return r != nil && now.After(r.began(watched, now).Add(r.Timeout.Duration))
}

// began is when the revision began. Where a clock recorded that which was ahead, the time since which
// the user cluster is watched counts.
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

// Good is the revision to which the next one would roll back: this one if it was healthy, or its
// own LastGood. It is not sure if this one may have become healthy since.
func (r *Record) Good() (revision int, sure bool) {
	switch {
	case r == nil:
		return 0, true
	case r.IsApplied() && r.Healthy:
		return r.Revision, true
	}
	return r.LastGood, !r.IsApplied()
}

// AwaitsProof says whether the revision's health is still to be recorded, for a rollback from it or
// to it. It is not while hooks have to run.
func (r *Record) AwaitsProof() bool {
	return (r.Atomic || r.Rollback != nil) && !r.Healthy && !r.HasHooks(r.Action.Post())
}
