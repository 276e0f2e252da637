package distributor

import (
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// remadeWithin is how long seeds keep what was generated from a catalogue in git that is gone. Where it is made again in that time, they
// keep it until its repository was read, for returnsWithin at most.
const remadeWithin = 30 * time.Second

// depart notes which catalogues in git are gone since the last pass.
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

// returning are the catalogues in git that are gone for a short while, or were made a short while ago and are not read whole: what seeds
// have of them stays.
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
