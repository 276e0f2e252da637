package addoninstallation

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/listcache"
	"github.com/trellis-addons/trellis/pkg/survey"
)

// views hold one view per cluster, so that one list serves all its installations; by UIDs (facts.place), since a name may come back.
type views struct {
	mutex sync.Mutex
	byUID map[types.UID]*view
}

// view is what the installations of a user cluster share of what was seen there.
type view struct {
	survey     *survey.Survey
	namespaces *apply.Namespaces
	helmNames  *listcache.Lists
	used       time.Time
}

// viewKept is how many intervals a view is kept at least after the last look; it is dropped when the next cluster comes.
const viewKept = 3

func (v *views) surveyOf(uid types.UID, interval time.Duration) *survey.Survey {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.of(uid, interval).survey
}

// newSurvey begins a cluster's survey anew: whatever it has listed, of workloads too, is listed again.
func (v *views) newSurvey(uid types.UID, interval time.Duration) *survey.Survey {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	seen := v.of(uid, interval)
	seen.survey = survey.New(interval, time.Now)
	return seen.survey
}

func (v *views) namespacesOf(uid types.UID, interval time.Duration) *apply.Namespaces {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.of(uid, interval).namespaces
}

func (v *views) helmNamesOf(uid types.UID, interval time.Duration) *listcache.Lists {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.of(uid, interval).helmNames
}

// of gives a cluster's view; the caller holds the mutex.
func (v *views) of(uid types.UID, interval time.Duration) *view {
	now := time.Now()
	if v.byUID == nil {
		v.byUID = map[types.UID]*view{}
	}
	if _, ok := v.byUID[uid]; !ok {
		maps.DeleteFunc(v.byUID, func(_ types.UID, other *view) bool { return now.Sub(other.used) > viewKept*interval })
		v.byUID[uid] = &view{
			survey: survey.New(interval, time.Now), namespaces: apply.NewNamespaces(time.Now), helmNames: listcache.New(time.Now),
		}
	}
	v.byUID[uid].used = now
	return v.byUID[uid]
}

// entries keeps merged catalogues as read, so that each is parsed once for all installations of its add-on.
type entries struct {
	mutex  sync.Mutex
	byName map[string]keptEntry
}

type keptEntry struct {
	resourceVersion string
	entry           *catalogue.Entry
}

func (e *entries) of(merged *kubermaticv1.AddonCatalogue) (*catalogue.Entry, error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if kept, ok := e.byName[merged.Name]; ok && kept.resourceVersion == merged.ResourceVersion {
		return kept.entry, nil
	}
	entry, err := catalogue.NewEntry(merged)
	if err != nil {
		return nil, err
	}
	if e.byName == nil {
		e.byName = map[string]keptEntry{}
	}
	e.byName[merged.Name] = keptEntry{resourceVersion: merged.ResourceVersion, entry: entry}
	return entry, nil
}
