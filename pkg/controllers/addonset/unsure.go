package addonset

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/addonset"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/waves"
)

// claims are what a copy may want that can't be gone by, or not yet. What others let go that it may
// want stays, and sets that come after it make nothing under its names.
type claims struct {
	// set is the name of the copy.
	set string
	// now is what the copy says, as far as it can be read; good what it said when it was last gone by,
	// nil where this process never went by it.
	now, good *set
	// unknown says that an earlier process went by it, and that this one does not know how.
	unknown bool
	// pending says that nothing is wrong with the copy: it is not taken yet.
	pending bool
}

// readings of the copy.
func (c *claims) readings() []*set {
	if c.good == nil {
		return []*set{c.now}
	}
	return []*set{c.now, c.good}
}

// want says whether a reading of the copy wants an item in a cluster, or may.
func (c *claims) want(reading *set, item string, in *place, from *offers) bool {
	return reading.byName[item] != nil && presenceOf(reading, in, from) != waves.Absent
}

// has says whether the copy may want an item in a cluster.
func (c *claims) has(item string, in *place, from *offers) bool {
	return c.unknown || slices.ContainsFunc(c.readings(), func(one *set) bool { return c.want(one, item, in, from) })
}

// isBefore says whether the copy may want an item in a cluster, and come before a set.
func (c *claims) isBefore(other *set, item string, in *place, from *offers) bool {
	return slices.ContainsFunc(c.readings(), func(one *set) bool { return one.before(other) < 0 && c.want(one, item, in, from) })
}

// itemOf is the item of the copy that has a name in a cluster; empty: none has.
func (c *claims) itemOf(name string, in target.Ref) string {
	for _, reading := range c.readings() {
		for item := range reading.byName {
			if in.NameOf(item) == name {
				return item
			}
		}
	}
	return ""
}

func (c *claims) isSame(other *claims) bool {
	return c.unknown == other.unknown && c.pending == other.pending && c.good == other.good && c.now.isSame(other.now)
}

// mayWant is a copy that can't be gone by and may want an item, so that it is not let go; nil: none.
func (p planner) mayWant(item string, in *place) *claims {
	for _, one := range p.rivals.unsure {
		if one.has(item, in, p.offers) {
			return one
		}
	}
	return nil
}

// comesFirst is a copy that can't be gone by and may want an item before the set; nil: none.
func (p planner) comesFirst(item string, in *place) *claims {
	for _, one := range p.rivals.unsure {
		if one.set != p.set.name && one.isBefore(p.set, item, in, p.offers) {
			return one
		}
	}
	return nil
}

// hold an item as it is for a copy that can't be gone by.
func (p *plan) hold(item string, of *claims, why string) {
	p.isHeld = true
	message := fmt.Sprintf("AddonSet %q %s, and is not read yet", of.set, why)
	if !of.pending {
		message = fmt.Sprintf("AddonSet %q %s, and what its copy on the seed says can't be gone by: mend that set, or delete it", of.set, why)
	}
	p.block(item, v1.ReasonSetUnreadable, message)
}

// glean what can be read of a copy: a selector or constraint that can't may mean any cluster.
func glean(found *v1.AddonSet) *set {
	read := &set{
		name: found.Name, uid: found.UID, generation: found.Generation, claim: addonset.ClaimOf(found),
		seed: found.Annotations[v1.AnnotationSeed], selector: labels.Everything(), byName: map[string]*item{},
	}
	if selector, err := metav1.LabelSelectorAsSelector(found.Spec.ClusterSelector); err == nil {
		read.selector = selector
	}
	if err := read.constrain(found.Spec.Constraints); err != nil {
		read.k8s, read.kkp = nil, nil
	}
	for i := range found.Spec.Addons {
		read.byName[string(found.Spec.Addons[i].Name)] = &item{AddonSetItem: found.Spec.Addons[i]}
	}
	return read
}

// claimsOf a copy that can't be gone by. Before are those that it had as such, good is the set that
// it was last; nil for none. A status with a revision tells that an earlier process went by it.
func claimsOf(found *v1.AddonSet, before *claims, good *set) *claims {
	made := &claims{set: found.Name, now: glean(found)}
	switch {
	case good != nil:
		made.good = good
	case before != nil && before.pending:
		made.good, made.unknown = before.now, before.unknown
	case before != nil:
		made.good, made.unknown = before.good, before.unknown
	default:
		made.unknown = found.Status.Revision != ""
	}
	return made
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

// expect what a copy wants that was read and is not taken yet: its pass may fail before. What it
// wanted before it wants until then. Others go on beside that: one whose passes fail stops none.
func (r *Reconciler) expect(read *set) {
	made := &claims{set: read.name, now: read, pending: true}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if run := r.sets[read.name]; run != nil && run.set != nil && run.isSame(read) {
		return
	}
	if before := r.unsure[read.name]; before != nil {
		made.good, made.unknown = before.good, before.unknown
	}
	r.passed[read.name] = true
	r.replaceClaims(read.name, made)
}

// read notes that a copy was read to its end, and can be gone by, or is not there.
func (r *Reconciler) read(name string) { r.noteRead(name, nil) }

// noteRead notes that a copy was read to its end; nil: nothing of it is unsure.
func (r *Reconciler) noteRead(name string, unsure *claims) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.passed[name] = true
	r.replaceClaims(name, unsure)
}

// replaceClaims of a copy. Clusters that waited for it are judged again, and all of them where the copy is not to be followed.
// The mutex is held.
func (r *Reconciler) replaceClaims(name string, unsure *claims) {
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
	var waiting []string
	for of, one := range r.sets {
		if one.isHeld || unsure != nil && !unsure.pending {
			waiting = append(waiting, of)
		}
	}
	slices.Sort(waiting)
	r.recount(waiting)
}

// seen is a copy as it was when what it may want was noted.
type seen struct {
	uid        types.UID
	generation int64
}

// sees notes that what a copy may want is known.
func (r *Reconciler) sees(found *v1.AddonSet) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.seen[found.Name] = seen{found.UID, found.Generation}
}

// unseen notes that a copy is not there.
func (r *Reconciler) unseen(name string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.seen, name)
}

// checkSeen says why what is let go may be another set's, by the copies that the API server has and
// the sets beside which it was planned; nil: it is not.
func (r *Reconciler) checkSeen(copies []metav1.PartialObjectMetadata, beside *rivals) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for i := range copies {
		if one := &copies[i]; isCopy(one) && r.seen[one.Name] != (seen{one.UID, one.Generation}) {
			return fmt.Errorf("AddonSet %q is not what the cache has: nothing is removed that may be its", one.Name)
		}
	}
	if r.rivals != beside {
		return errors.New("sets changed meanwhile: nothing is removed by what they were")
	}
	return nil
}
