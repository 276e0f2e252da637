package installer

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/health"
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
	// It was begun with these words about adoption (Asked.adoption).
	rollout  *apply.Rollout
	adopting string
	// stagePasses counts the passes in a row in which the rollout could write nothing more than the
	// stageWritten of before.
	stagePasses, stageWritten int
	// nextSurvey is when the objects are compared with the record; isSurveyOutdated: what was
	// listed before does not count then.
	nextSurvey       time.Time
	isSurveyOutdated bool
	// reconcileAt is the annotation's value that was last acted on.
	reconcileAt string
	// repairs counts repairs object by object, repairPasses the passes in a row in which something
	// could not be put back.
	repairs      map[ownership.Key]repairCount
	repairPasses int
	// fingerprint is how the other installations of the add-on stood when what is used of them was
	// compared last.
	fingerprint string
	// health of the objects as last assessed, without the Lease; unhealthyPasses counts the passes since the rollout ended that found
	// it not healthy yet.
	health          *survey.Health
	unhealthyPasses int32
	// runningPasses counts the looks in a row that found Jobs or Pods running which do not count.
	runningPasses int32
	// wasHealthy says that all was when it was looked at last, the Lease too.
	wasHealthy bool
	// brokenSince is when what was healthy was found not to be; zero while it is, or where this
	// process never saw it healthy.
	brokenSince time.Time
	// helmWritten is the state of the Helm release that the user cluster is known to show, and
	// helmVersion the resource version of that Secret; helmTooLarge is the Secret that would show a
	// revision and is too large; "" is none.
	helmWritten, helmVersion, helmTooLarge string
	// copyNumberTaken says that somebody made a revision of the number that the copy was to have.
	copyNumberTaken bool
	// byHandPasses counts the passes in a row that found revisions of the Helm release made by
	// hand; none is followed before nextByHand.
	byHandPasses int32
	nextByHand   time.Time
	// beat is what was seen of the Lease that shows the add-on alive, which is beatOf.
	beat   health.Beat
	beatOf calls.Place
	// kept are the digests of what kept Secrets were last seen or written with.
	kept map[ownership.Key]string
	// hookPasses counts the passes in a row that found hooks running.
	hookPasses int
	// staying are objects that stay after a removal or a prune, once that was reported.
	staying map[ownership.Key]bool
	// removalPasses counts the passes in a row over a removal that left no fewer than removalLeft
	// objects.
	removalPasses int32
	removalLeft   int
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

// connect has everything read again in a user cluster that came in place of the one before: it was
// restored or made anew, and somebody confirmed it.
func (m *State) connect(userCluster types.UID) {
	if m.userCluster != "" && m.userCluster != userCluster {
		m.doubtCluster()
		m.health, m.nextSurvey, m.beat = nil, time.Time{}, health.Beat{}
		m.helmWritten, m.helmTooLarge, m.helmVersion = "", "", ""
		m.repairs, m.kept = map[ownership.Key]repairCount{}, nil
	}
	m.userCluster = userCluster
}

// isNewlyKept says whether it is news that an object stays, and remembers it.
func (m *State) isNewlyKept(key ownership.Key) bool {
	if m.staying == nil {
		m.staying = map[ownership.Key]bool{}
	}
	isNew := !m.staying[key]
	m.staying[key] = true
	return isNew
}

// countRunning counts a look that found Jobs or Pods running, or none.
func (m *State) countRunning(isRunning bool) {
	m.runningPasses++
	if !isRunning {
		m.runningPasses = 0
	}
}

// countStage counts a pass over a rollout that has written so many objects by now.
func (m *State) countStage(written int) {
	if written != m.stageWritten {
		m.stagePasses, m.stageWritten = 0, written
	}
	m.stagePasses++
}

// countRemoval counts a pass over a removal that has so many objects left.
func (m *State) countRemoval(left int) {
	if left != m.removalLeft {
		m.removalPasses, m.removalLeft = 0, left
	}
	m.removalPasses++
}

// begin continues with a new revision, which is on record and of which nothing is applied or shown
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
		doubted.Inventory = doubted.Inventory.Unconfirmed()
		m.Record = &doubted
	}
}

// doubt has the record read again: a save failed, or the seed has another record than this one.
func (m *State) doubt() { m.Loaded, m.Record, m.rollout = false, nil, nil }

// Lost says that the user cluster does not answer, or is paused.
func (p *Pass) Lost() { p.State.Watched = time.Time{} }
