package distributor

import (
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// remadeWithin is how long seeds keep the content that was generated from a deleted catalogue in git. If the
// catalogue is recreated in that time, they keep it until its repository was read, for returnsWithin at most.
const remadeWithin = 30 * time.Second

// depart notes which catalogues in git were deleted since the last reconciliation.
func (r *Reconciler) depart(fresh readings) {
	if r.departed == nil {
		r.departed = map[string]time.Time{}
	}
	for uid, was := range r.readings {
		if fresh[uid] == nil && was.object.Spec.Git != nil && was.reason != v1.ReasonWrongNamespace {
			r.departed[was.object.Name] = r.pace.repaid
		}
	}
}

// returning are the catalogues in git that were deleted a short while ago, or were created a short while ago and are
// not read completely: their content on seeds stays.
func (r *Reconciler) returning(f *facts) map[string]bool {
	held, unread := map[string]bool{}, map[string]bool{}
	until := func(name string, end time.Time) {
		if left := end.Sub(r.options.Clock.Now()); left > 0 {
			held[name] = true
			f.recheckIn(left)
		}
	}
	for _, reading := range f.readings {
		isUnread := reading.object.Spec.Git != nil && reading.object.Status.Revision == "" && !isFetched(reading.object)
		if isUnread || reading.isHeld() {
			unread[catalogue.Author(reading.object)] = true
		}
	}
	for _, reading := range f.readings {
		object := reading.object
		if object.Labels[v1.LabelRole] != "" || reading.reason == v1.ReasonWrongNamespace {
			continue
		}
		delete(r.departed, object.Name)
		if unread[object.Name] {
			until(object.Name, object.CreationTimestamp.Add(returnsWithin))
		}
	}
	for name, at := range r.departed {
		if until(name, at.Add(remadeWithin)); !held[name] {
			delete(r.departed, name)
		}
	}
	return held
}
