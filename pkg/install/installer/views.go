package installer

import (
	"sync/atomic"
	"time"

	"github.com/trellis-addons/trellis/pkg/base/listcache"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/survey"
)

// view is the data read from a user cluster that its installations share, so that one list serves all of them.
type view struct {
	now        func() time.Time
	survey     atomic.Pointer[survey.Survey]
	namespaces *apply.Namespaces
	helmNames  *listcache.Lists
}

// viewKept is how many intervals a view is kept after its last use.
const viewKept = 3

// view is the view of the connected user cluster. It is identified by UIDs, since a name may be reused, and the Cluster
// may get another user cluster.
func (p *Run) view() *view {
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

// newSurvey starts a new survey: everything it listed, including workloads, is listed again.
func (v *view) newSurvey(interval time.Duration) {
	v.survey.Store(survey.New(interval, v.now))
}
