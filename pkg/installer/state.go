package installer

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/survey"
)

// State is what passes over one installation keep between them. All of it can be lost: the record
// is read again, a rollout begins again from the recorded intent. One pass at a time uses it.
type State struct {
	// Loaded says that the record was read, also when there is none.
	Loaded bool
	// Record is the newest; one that is applied is without its objects.
	Record *revision.Record
	// Watched is since when the user cluster has answered without a gap; zero while it does not, or
	// is paused.
	Watched time.Time

	// rollout is under way for the record's revision; nil once it is through, or after a restart.
	// It was begun with annotation adopt, or without.
	rollout  *apply.Rollout
	adopting bool
	// stageLooks counts the passes in a row in which the rollout could write nothing more than the
	// stageWritten of before.
	stageLooks, stageWritten int
	// nextSurvey is when the objects are compared with the record; surveyAnew: what was listed
	// before does not count then.
	nextSurvey time.Time
	surveyAnew bool
	// reconcileAt is the annotation's value that was last acted on.
	reconcileAt string
	// repairs counts repairs object by object, repairLooks the passes in a row in which something
	// could not be put back.
	repairs     map[ownership.Key]repairCount
	repairLooks int
	// stand is how the other installations of the add-on stood when what is used of them was
	// compared last.
	stand string
	// health as last assessed; looks counts the passes since the rollout ended that found it not
	// healthy yet.
	health *survey.Health
	looks  int32
	// helmWritten is the state of the Helm release that the user cluster is known to show, and
	// helmVersion the resource version of that Secret; helmTooLarge is the Secret that would show a
	// revision and is too large; "" is none.
	helmWritten, helmVersion, helmTooLarge string
	// copyTaken says that somebody made a revision of the number that the copy was to have.
	copyTaken bool
	// handTurns counts the passes in a row that found revisions of the Helm release made by hand;
	// none is followed before handsOff.
	handTurns int32
	handsOff  time.Time
	// hookLooks counts the passes in a row that found hooks running.
	hookLooks int
	// kept are the namespaces that stay after a removal, once that was told.
	kept map[string]bool
	// removalLooks counts the passes in a row over a removal that left no fewer than removalLeft
	// objects.
	removalLooks int32
	removalLeft  int
	// userCluster is the UID of the user cluster that the objects were seen in; empty before the
	// first connection.
	userCluster types.UID
}

// NewState is that of an installation of which this process knows nothing but the value of
// annotation reconcile-at: what was there before the process is not asked for anew.
func NewState(reconcileAt string) State {
	return State{reconcileAt: reconcileAt, repairs: map[ownership.Key]repairCount{}}
}

// Afresh is the state for another user cluster.
func (m *State) Afresh() State { return NewState(m.reconcileAt) }

// reach has everything looked at again in a user cluster that took the place of the one before: it
// was restored or made anew, and somebody confirmed it.
func (m *State) reach(userCluster types.UID) {
	if m.userCluster != "" && m.userCluster != userCluster {
		m.doubtCluster()
		m.health, m.nextSurvey = nil, time.Time{}
		m.helmWritten, m.helmTooLarge, m.helmVersion = "", "", ""
		m.repairs = map[ownership.Key]repairCount{}
	}
	m.userCluster = userCluster
}

// waited counts a look at a rollout that has written so many objects by now.
func (m *State) waited(written int) {
	if written != m.stageWritten {
		m.stageLooks, m.stageWritten = 0, written
	}
	m.stageLooks++
}

// leaves counts a look at a removal that has so many objects left.
func (m *State) leaves(left int) {
	if left != m.removalLeft {
		m.removalLooks, m.removalLeft = 0, left
	}
	m.removalLooks++
}

// begin goes on with a new revision, which is on record and of which nothing is applied or shown
// yet.
func (m *State) begin(intent *revision.Record) {
	m.Record, m.rollout, m.helmVersion = intent, nil, ""
}

// doubtCluster has the next rollout write every object, since the user cluster may not have what is
// on record.
func (m *State) doubtCluster() {
	m.rollout = nil
	if m.Record != nil {
		doubted := *m.Record
		doubted.Inventory = doubted.Inventory.Doubted()
		m.Record = &doubted
	}
}

// doubt has the record read again: a save failed, so it is not known what the seed has.
func (m *State) doubt() { m.Loaded, m.Record, m.rollout = false, nil, nil }

// Lost says that the user cluster does not answer, or is paused.
func (p *Pass) Lost() { p.State.Watched = time.Time{} }
