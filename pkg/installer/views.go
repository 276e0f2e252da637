package installer

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/listcache"
	"github.com/trellis-addons/trellis/pkg/lru"
	"github.com/trellis-addons/trellis/pkg/survey"
)

// views hold one view per cluster, so that one list serves all its installations; by UIDs
// (Pass.place), since a name may come back.
type views struct {
	mutex sync.Mutex
	byUID lru.Cache[types.UID, *view]
}

// view is what the installations of a user cluster share of what was seen there.
type view struct {
	survey     *survey.Survey
	namespaces *apply.Namespaces
	helmNames  *listcache.Lists
}

// viewKept is how many intervals a view is kept after its last use.
const viewKept = 3

func (v *views) surveyOf(uid types.UID, interval time.Duration) *survey.Survey {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.of(uid, interval).survey
}

// newSurvey begins a cluster's survey anew: whatever it has listed, of workloads too, is listed
// again.
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
	return v.byUID.Renew(uid, viewKept*interval, func() *view {
		return &view{
			survey: survey.New(interval, time.Now), namespaces: apply.NewNamespaces(time.Now), helmNames: listcache.New(time.Now),
		}
	})
}
