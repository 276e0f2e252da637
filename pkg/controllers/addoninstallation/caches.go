package addoninstallation

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/lru"
	"github.com/trellis-addons/trellis/pkg/release"
)

// views hold one view per cluster, so that one list serves all its installations; by UIDs (facts.place), since a name may come back.
type views struct {
	mutex sync.Mutex
	byUID lru.Cache[types.UID, *view]
}

// view is what the installations of a user cluster share of what was seen there.
type view struct {
	survey     *apply.Survey
	namespaces *apply.Namespaces
	helmNames  *release.HelmNames
}

// viewKept is how many intervals a view is kept after its last use.
const viewKept = 3

func (v *views) surveyOf(uid types.UID, interval time.Duration) *apply.Survey {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.of(uid, interval).survey
}

// newSurvey begins a cluster's survey anew: whatever it has listed, of workloads too, is listed again.
func (v *views) newSurvey(uid types.UID, interval time.Duration) *apply.Survey {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	seen := v.of(uid, interval)
	seen.survey = apply.NewSurvey(interval, time.Now)
	return seen.survey
}

func (v *views) namespacesOf(uid types.UID, interval time.Duration) *apply.Namespaces {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.of(uid, interval).namespaces
}

func (v *views) helmNamesOf(uid types.UID, interval time.Duration) *release.HelmNames {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.of(uid, interval).helmNames
}

// of gives a cluster's view; the caller holds the mutex.
func (v *views) of(uid types.UID, interval time.Duration) *view {
	return v.byUID.Renew(uid, viewKept*interval, func() *view {
		return &view{
			survey: apply.NewSurvey(interval, time.Now), namespaces: apply.NewNamespaces(time.Now), helmNames: release.NewHelmNames(time.Now),
		}
	})
}

// entriesKept is some times the number of add-ons that large platforms have.
const entriesKept = 4096

// entries keeps merged catalogues as read, so that each is parsed once for all installations of its add-on.
type entries struct {
	byName *lru.Cache[string, keptEntry]
}

func newEntries() entries { return entries{lru.New[string, keptEntry](entriesKept, nil)} }

type keptEntry struct {
	resourceVersion string
	entry           *catalogue.Entry
}

func (e *entries) of(merged *kubermaticv1.AddonCatalogue) (*catalogue.Entry, error) {
	if kept, ok := e.byName.Get(merged.Name); ok && kept.resourceVersion == merged.ResourceVersion {
		return kept.entry, nil
	}
	entry, err := catalogue.NewEntry(merged)
	if err != nil {
		return nil, err
	}
	e.byName.Put(merged.Name, keptEntry{resourceVersion: merged.ResourceVersion, entry: entry}, lru.Forever)
	return entry, nil
}
