package addoninstallation

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/conditions"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/survey"
)

// memory is what one installation's passes keep between them. All of it can be lost: the record is read again, a rollout
// starts again from the recorded intent. The queue gives an installation to one worker at a time, so it needs no lock.
type memory struct {
	// uid of the installation.
	uid types.UID
	// owner that record and rollout belong to; with another Cluster in the namespace everything begins anew.
	owner ownership.Owner
	// loaded says that the record was read, also when there is none.
	loaded bool
	record *revision.Record
	// rollout is under way for the record's revision; nil once it is through, or after a restart.
	rollout *apply.Rollout
	// adopting is how the rollout was begun: with annotation adopt, or without.
	adopting bool
	// stageLooks counts the looks in a row at which the rollout could write nothing more than the stageWritten of before.
	stageLooks, stageWritten int
	// failures counts failed attempts in a row.
	failures int32
	// nextSurvey is when the objects are to be looked at for drift.
	nextSurvey time.Time
	// surveyAnew: what was listed before does not count at that look.
	surveyAnew bool
	// looks counts the visits since the rollout ended that found it not healthy yet; it stretches the time between them.
	looks int32
	// repairLooks counts the looks in a row at which something could not be put back.
	repairLooks int
	// siblings is how the other installations of the add-on stood when what is used of them was looked at last.
	siblings string
	// health as last assessed.
	health *survey.Health
	// helmWritten is the state of the Helm release that the user cluster is known to show.
	helmWritten string
	// helmTooLarge is the Secret that would show a revision of a Helm release and is too large; "" is none.
	helmTooLarge string
	// helmVersion is the resource version of the Secret that shows helmWritten.
	helmVersion string
	// brought are groups that count as not served, since the content brings them itself.
	brought broughtGroups
	// copyTaken says that somebody made a revision of the number that the copy was to have.
	copyTaken bool
	// handTurns counts the looks in a row that found revisions of the Helm release made by hand; none is taken before handsOff.
	handTurns int32
	handsOff  time.Time
	// hookLooks counts the looks in a row at hooks that run.
	hookLooks int
	// repairs counts repairs object by object.
	repairs map[ownership.Key]repairCount
	// reconcileAt is the annotation's value that was last acted on.
	reconcileAt string
	// renderedAnew is the value of annotation reconcile-at that was rendered for; changesTold the inputs whose second
	// rendering gave something else, once that was told.
	renderedAnew, changesTold string
	// comparing: a second rendering, to compare, is under way.
	comparing bool
	// kept are the namespaces that stay after a removal, once that was told.
	kept map[string]bool
	// told is the generation of which a long rollout was announced.
	told int64
	// awaited is what stands in the way in the user cluster; nil is nothing that one call can see.
	awaited *awaited
	// refusals counts attempts in a row that ended in something that has to be done first.
	refusals int32
	// removalLooks counts the looks in a row at a removal at which no more than removalLeft objects were left.
	removalLooks int32
	removalLeft  int
	// trouble is what was told last of why the installation is not ready.
	trouble conditions.Told
	// written is the last status, until the cache shows it.
	written *written
	// watched is since when the user cluster has answered without a gap; zero while it does not, or is paused.
	watched time.Time
	// userCluster is the UID of the user cluster that the objects were seen in; empty before the first connection.
	userCluster types.UID
	// refreshed says that the source was looked at again for a new value of reconcile-at.
	refreshed bool
}

// cacheLag is how long the cache may take to show what was written.
const cacheLag = 10 * time.Second

// written is a status as it was written last.
type written struct {
	resourceVersion string
	status          kubermaticv1.AddonInstallationStatus
	at              time.Time
}

// wrote remembers a status that the cache will show in a moment.
func (m *memory) wrote(installation *kubermaticv1.AddonInstallation) {
	m.written = &written{installation.ResourceVersion, *installation.Status.DeepCopy(), time.Now()}
}

// catchUp gives an object from the cache the status that was written last, until the cache shows it. Two passes can follow
// each other faster than that: the second would compare with the status before both, and leave the first one's standing.
func (m *memory) catchUp(installation *kubermaticv1.AddonInstallation) {
	switch {
	case m.written == nil:
	case installation.ResourceVersion == m.written.resourceVersion || time.Since(m.written.at) > cacheLag:
		m.written = nil
	default:
		installation.Status = *m.written.status.DeepCopy()
	}
}

// memories are all installations' memories by name.
type memories struct {
	mutex  sync.Mutex
	byName map[types.NamespacedName]*memory
}

// of gives the memory of an installation; one made anew under an old name starts afresh.
func (m *memories) of(installation *kubermaticv1.AddonInstallation) *memory {
	name := types.NamespacedName{Namespace: installation.Namespace, Name: installation.Name}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.byName == nil {
		m.byName = map[types.NamespacedName]*memory{}
	}
	known, ok := m.byName[name]
	if !ok || known.uid != installation.UID {
		known = &memory{
			uid: installation.UID, repairs: map[ownership.Key]repairCount{},
			reconcileAt:  installation.Annotations[kubermaticv1.AnnotationReconcileAt],
			renderedAnew: installation.Annotations[kubermaticv1.AnnotationReconcileAt], trouble: troubleOf(installation),
		}
		m.byName[name] = known
	}
	return known
}

// forget drops the memory of an installation that is gone.
func (m *memories) forget(name types.NamespacedName) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.byName, name)
}

// belongTo empties the memory if it is about another Cluster.
func (m *memory) belongTo(owner ownership.Owner) {
	if m.owner != owner {
		*m = memory{
			uid: m.uid, owner: owner, repairs: map[ownership.Key]repairCount{}, reconcileAt: m.reconcileAt, renderedAnew: m.renderedAnew,
			trouble: m.trouble,
		}
	}
}

// reach has everything looked at again in a user cluster that took the place of the one before: it was restored or made anew, and
// somebody confirmed it.
func (m *memory) reach(userCluster types.UID) {
	if m.userCluster != "" && m.userCluster != userCluster {
		m.doubtCluster()
		m.health, m.nextSurvey = nil, time.Time{}
		m.helmWritten, m.helmTooLarge, m.helmVersion = "", "", ""
		m.repairs = map[ownership.Key]repairCount{}
	}
	m.userCluster = userCluster
}

// waited counts a look at a rollout that has written so many objects by now.
func (m *memory) waited(written int) {
	if written != m.stageWritten {
		m.stageLooks, m.stageWritten = 0, written
	}
	m.stageLooks++
}

// leaves counts a look at a removal that has so many objects left.
func (m *memory) leaves(left int) {
	if left != m.removalLeft {
		m.removalLooks, m.removalLeft = 0, left
	}
	m.removalLooks++
}

// begin goes on with a new revision, which is on record and of which nothing is applied or shown yet.
func (m *memory) begin(intent *revision.Record) {
	m.record, m.rollout, m.helmVersion = intent, nil, ""
}

// doubtCluster has the next rollout write every object, since the user cluster may not have what is on record.
func (m *memory) doubtCluster() {
	m.rollout = nil
	if m.record != nil {
		doubted := *m.record
		doubted.Inventory = doubted.Inventory.Doubted()
		m.record = &doubted
	}
}

// doubt has the record read again: a save failed, so it is not known what the seed has.
func (m *memory) doubt() { m.loaded, m.record, m.rollout = false, nil, nil }
