package installer

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/pkg/catalogue/health"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/install/survey"
)

// State is kept between reconciliations of one installation. All of it can be lost: the record is read again, and a
// rollout restarts from the recorded intent. One reconciliation at a time uses it.
type State struct {
	// Loaded says that the record was read, also if there is none.
	Loaded bool
	// Record is the newest one; an applied record is without its objects.
	Record *revision.Record
	// Watched is the time since when the user cluster has answered without a gap; zero while it does not, or is paused.
	Watched time.Time

	// rollout of the record's revision; nil when it is complete, or after a restart. It began with these adoption
	// settings (Asked.adoption).
	rollout  *apply.Rollout
	adopting string
	// stageRuns counts the consecutive reconciliations in which the rollout wrote no more than the previous
	// stageWritten objects.
	stageRuns, stageWritten int
	// nextSurvey is when the objects are compared with the record; isSurveyOutdated: that comparison must not use older
	// lists.
	nextSurvey       time.Time
	isSurveyOutdated bool
	// reconcileAt is the annotation's last handled value.
	reconcileAt string
	// repairs counts repairs of each object, repairRuns the consecutive reconciliations in which an object could not
	// be restored.
	repairs    map[ownership.Key]repairCount
	repairRuns int
	// fingerprint is the state of the add-on's other installations at the last comparison of used objects.
	fingerprint string
	// health of the objects at the last assessment, without the Lease; unhealthyRuns counts the reconciliations since
	// the end of the rollout that found it unhealthy.
	health        *survey.Health
	unhealthyRuns int32
	// activeRuns counts the consecutive assessments that found running Jobs or Pods which do not count.
	activeRuns int32
	// wasHealthy says that everything was healthy at the last assessment, including the Lease.
	wasHealthy bool
	// brokenSince is when healthy objects were found unhealthy; zero while they are healthy, or if this process never
	// saw them healthy.
	brokenSince time.Time
	// helmWritten is the state of the Helm release that the user cluster shows, and helmVersion the resource version of
	// that Secret; helmTooLarge names the Secret of a revision that is too large for it; "" is none.
	helmWritten, helmVersion, helmTooLarge string
	// copyNumberTaken says that a user made a revision with the number of the copy.
	copyNumberTaken bool
	// byHandRuns counts the consecutive reconciliations that found revisions of the Helm release made by hand; none
	// is followed before nextByHand.
	byHandRuns int32
	nextByHand time.Time
	// beat is the observed state of the Lease beatOf, which shows that the add-on is alive.
	beat   health.Beat
	beatOf calls.Place
	// secretDigests are the digests of managed Secrets as last seen or written.
	secretDigests map[ownership.Key]string
	// hookRuns counts the consecutive reconciliations that found running hooks.
	hookRuns int
	// staying are objects that stay after a removal or a prune, and were reported.
	staying map[ownership.Key]bool
	// removalRuns counts the consecutive reconciliations of a removal that left no fewer than removalLeft objects.
	removalRuns int32
	removalLeft int
	// userCluster is the UID of the user cluster in which the objects were seen; empty before the first connection.
	userCluster types.UID
}

// NewState is the state of an installation of which a new process knows only annotation reconcile-at: a value older
// than the process requests nothing.
func NewState(reconcileAt string) State {
	return State{reconcileAt: reconcileAt, repairs: map[ownership.Key]repairCount{}}
}

// Afresh is the state for another user cluster.
func (m *State) Afresh() State { return NewState(m.reconcileAt) }

// connect makes everything be read again after the user cluster was replaced by a restored or recreated one, and a user
// confirmed it.
func (m *State) connect(userCluster types.UID) {
	if m.userCluster != "" && m.userCluster != userCluster {
		m.markClusterUnknown()
		m.health, m.nextSurvey, m.beat = nil, time.Time{}, health.Beat{}
		m.helmWritten, m.helmTooLarge, m.helmVersion = "", "", ""
		m.repairs, m.secretDigests = map[ownership.Key]repairCount{}, nil
	}
	m.userCluster = userCluster
}

// isNewlyKept says whether a staying object was not reported yet, and remembers it.
func (m *State) isNewlyKept(key ownership.Key) bool {
	if m.staying == nil {
		m.staying = map[ownership.Key]bool{}
	}
	isNew := !m.staying[key]
	m.staying[key] = true
	return isNew
}

// countRunning counts an assessment that found running Jobs or Pods, or none.
func (m *State) countRunning(isRunning bool) {
	m.activeRuns++
	if !isRunning {
		m.activeRuns = 0
	}
}

// countStage counts a reconciliation of a rollout with its number of written objects.
func (m *State) countStage(written int) {
	if written != m.stageWritten {
		m.stageRuns, m.stageWritten = 0, written
	}
	m.stageRuns++
}

// countRemoval counts a reconciliation of a removal with its number of remaining objects.
func (m *State) countRemoval(left int) {
	if left != m.removalLeft {
		m.removalRuns, m.removalLeft = 0, left
	}
	m.removalRuns++
}

// begin continues with a new revision that is on record, and of which nothing is applied or shown yet.
func (m *State) begin(intent *revision.Record) {
	m.Record, m.rollout, m.helmVersion = intent, nil, ""
}

// markClusterUnknown makes the next rollout write every object, since the user cluster may lack recorded objects.
func (m *State) markClusterUnknown() {
	m.rollout = nil
	if m.Record != nil {
		unconfirmed := *m.Record
		unconfirmed.Inventory = unconfirmed.Inventory.Unconfirmed()
		m.Record = &unconfirmed
	}
}

// forgetRecord makes the record be read again: a save failed, or the seed has another record than this one.
func (m *State) forgetRecord() { m.Loaded, m.Record, m.rollout = false, nil, nil }

// Lost says that the user cluster does not answer, or is paused.
func (p *Run) Lost() { p.State.Watched = time.Time{} }
