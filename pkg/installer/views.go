package installer

import (
	"sync/atomic"
	"time"

	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/listcache"
	"github.com/trellis-addons/trellis/pkg/survey"
)

// view is what the installations of a user cluster share of what was read there, so that one list
// serves all of them.
type view struct {
	now        func() time.Time
	survey     atomic.Pointer[survey.Survey]
	namespaces *apply.Namespaces
	helmNames  *listcache.Lists
}

// viewKept is how many intervals a view is kept after its last use.
const viewKept = 3

// view is that of the pass's user cluster. It is known by UIDs, since a name may come back, and the
// Cluster may get another user cluster.
func (p *Pass) view() *view {
	interval := p.installer.Interval
	return p.installer.views.Renew(p.Cluster.UID+"/"+p.Connection.UserCluster, viewKept*interval, func() *view {
		now := p.installer.Now
		if now == nil {
			now = time.Now
		}
		made := &view{now: now, namespaces: apply.NewNamespaces(now), helmNames: listcache.New(now)}
		made.newSurvey(interval)
		return made
	})
}

// newSurvey begins the survey anew: whatever it has listed, of workloads too, is listed again.
func (v *view) newSurvey(interval time.Duration) {
	v.survey.Store(survey.New(interval, v.now))
}
