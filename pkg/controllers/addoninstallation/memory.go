package addoninstallation

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/conditions"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// memory is what one installation's passes keep between them. All of it can be lost. The queue gives an
// installation to one worker at a time, so it needs no lock.
type memory struct {
	installer.State
	// uid of the installation.
	uid types.UID
	// owner that the state belongs to; with another Cluster in the namespace everything begins anew.
	owner ownership.Owner
	// failures counts failed attempts in a row.
	failures int32
	// brought are groups that count as not served, since the content brings them itself.
	brought broughtGroups
	// renderedAnew is the value of annotation reconcile-at that was rendered for; changesTold the inputs whose second
	// rendering gave something else, once that was told.
	renderedAnew, changesTold string
	// comparing: a second rendering, to compare, is under way.
	comparing bool
	// told is the generation of which a long rollout was announced.
	told int64
	// awaited is what stands in the way in the user cluster; nil is nothing that one call can see.
	awaited *awaited
	// refusals counts attempts in a row that ended in something that has to be done first.
	refusals int32
	// trouble is what was told last of why the installation is not ready.
	trouble conditions.Told
	// written is the last status, until the cache shows it.
	written *written
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
			uid: installation.UID, State: installer.NewState(installation.Annotations[kubermaticv1.AnnotationReconcileAt]),
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
		*m = memory{State: m.Afresh(), uid: m.uid, owner: owner, renderedAnew: m.renderedAnew, trouble: m.trouble}
	}
}
