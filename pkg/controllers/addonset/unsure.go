package addonset

import (
	"maps"
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// claims are the names of items that a copy may want which can't be gone by: what others let go
// under one of these stays, since it may be that set's.
type claims struct {
	// present are the names that the copy has now, good those of the last one that was gone by.
	present, good map[string]bool
	// unknown says that the copy was gone by once, and that this process does not know how.
	unknown bool
}

// has says whether the copy may want an item of that name.
func (c *claims) has(item string) bool { return c.unknown || c.present[item] || c.good[item] }

// claimsOf a copy that can't be gone by. Before are those that it had as such, good is the set that
// it was last; nil for none. A status with a revision tells that an earlier process went by it.
func claimsOf(found *v1.AddonSet, before *claims, good *set) *claims {
	made := &claims{present: map[string]bool{}, good: map[string]bool{}}
	for i := range found.Spec.Addons {
		made.present[string(found.Spec.Addons[i].Name)] = true
	}
	switch {
	case good != nil:
		for name := range good.byName {
			made.good[name] = true
		}
	case before != nil:
		made.good, made.unknown = before.good, before.unknown
	default:
		made.unknown = found.Status.Revision != ""
	}
	return made
}

func (c *claims) isSame(other *claims) bool {
	return c.unknown == other.unknown && maps.Equal(c.present, other.present) && maps.Equal(c.good, other.good)
}

// doubt a copy that is there and can't be gone by: its set goes on no further, what it made stays,
// and so does what others let go that it may want.
func (r *Reconciler) doubt(found *v1.AddonSet) {
	r.mutex.Lock()
	var good *set
	if run := r.sets[found.Name]; run != nil {
		good = run.set
	}
	before := r.unsure[found.Name]
	r.mutex.Unlock()
	r.forget(found.Name)
	r.noteRead(found.Name, claimsOf(found, before, good))
}

// read notes that a copy was read to its end, and can be gone by, or is not there.
func (r *Reconciler) read(name string) { r.noteRead(name, nil) }

// noteRead notes that a copy was read to its end; nil: nothing of it is unsure.
func (r *Reconciler) noteRead(name string, unsure *claims) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.passed[name] = true
	before := r.unsure[name]
	if before == unsure || before != nil && unsure != nil && before.isSame(unsure) {
		return
	}
	if unsure != nil {
		r.unsure[name] = unsure
	} else {
		delete(r.unsure, name)
	}
	r.changeRivals()
	r.recount(slices.Sorted(maps.Keys(r.sets)))
}
