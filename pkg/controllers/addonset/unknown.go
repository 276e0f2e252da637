package addonset

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

// claims are the possible claims of a copy that can't be used, or not yet. Installations of other sets that it may
// claim stay, and sets that come after it create nothing under its names.
type claims struct {
	// set is the name of the copy.
	set string
	// now is the readable part of the copy; good is the copy when it was last used, nil if this process never used it.
	now, good *set
	// unknown says that an earlier process used it, and that this one does not know its content then.
	unknown bool
	// pending says that the copy has no problem, and only waits to be taken.
	pending bool
}

// readings are the present and the last valid reading of the copy.
func (c *claims) readings() []*set {
	if c.good == nil {
		return []*set{c.now}
	}
	return []*set{c.now, c.good}
}

// want reports whether a reading of the copy claims an item in a cluster, or may.
func (c *claims) want(reading *set, item string, in *place, from *offers) bool {
	return reading.byName[item] != nil && presenceOf(reading, in, from) != waves.Absent
}

// has reports whether the copy may claim an item in a cluster.
func (c *claims) has(item string, in *place, from *offers) bool {
	return c.unknown || slices.ContainsFunc(c.readings(), func(one *set) bool { return c.want(one, item, in, from) })
}

// isBefore reports whether the copy may claim an item in a cluster, and has precedence over a set.
func (c *claims) isBefore(other *set, item string, in *place, from *offers) bool {
	return slices.ContainsFunc(c.readings(), func(one *set) bool { return one.before(other) < 0 && c.want(one, item, in, from) })
}

// itemOf is the item of the copy that has a name in a cluster; empty if there is none.
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

// mayWant is an unusable copy that may claim an item, so that its installation stays; nil if there is none.
func (p planner) mayWant(item string, in *place) *claims {
	for _, one := range p.competitors.unknown {
		if one.has(item, in, p.offers) {
			return one
		}
	}
	return nil
}

// comesFirst is an unusable copy that may claim an item and has precedence over the set; nil if there is none.
func (p planner) comesFirst(item string, in *place) *claims {
	for _, one := range p.competitors.unknown {
		if one.set != p.set.name && one.isBefore(p.set, item, in, p.offers) {
			return one
		}
	}
	return nil
}

// hold leaves an item as it is because of a copy that can't be used.
func (p *plan) hold(item string, of *claims, why string) {
	p.isHeld = true
	message := fmt.Sprintf("AddonSet %q %s, and is not read yet", of.set, why)
	if !of.pending {
		message = fmt.Sprintf("AddonSet %q %s, so its copy on the seed can't be used: fix that set, or delete it", of.set, why)
	}
	p.block(item, v1.ReasonSetUnreadable, message)
}

// glean reads the readable part of a copy: an unreadable selector or constraint may match any cluster.
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

// claimsOf are the claims of a copy that can't be used. Argument before are its previous claims, good is its last
// usable set; nil for none. A status with a revision shows that an earlier process used the copy.
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

// markUnknown handles an existing copy that can't be used: its set does not continue, its installations stay, and so do
// those of other sets that it may claim.
func (r *Reconciler) markUnknown(found *v1.AddonSet) {
	r.mutex.Lock()
	var good *set
	if run := r.sets[found.Name]; run != nil {
		good = run.set
	}
	before := r.unusable[found.Name]
	r.mutex.Unlock()
	r.forget(found.Name)
	r.noteRead(found.Name, claimsOf(found, before, good))
}

// expect notes the claims of a copy that was read and is not taken yet: its reconciliation may fail before that. Its
// previous claims apply until then. Other sets continue: one whose reconciliations fail stops none of them.
func (r *Reconciler) expect(read *set) {
	made := &claims{set: read.name, now: read, pending: true}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if run := r.sets[read.name]; run != nil && run.set != nil && run.isSame(read) {
		return
	}
	if before := r.unusable[read.name]; before != nil {
		made.good, made.unknown = before.good, before.unknown
	}
	r.passed[read.name] = true
	r.replaceClaims(read.name, made)
}

// read notes that a copy was read completely and can be used, or does not exist.
func (r *Reconciler) read(name string) { r.noteRead(name, nil) }

// noteRead notes that a copy was read completely; nil: no claim is unknown.
func (r *Reconciler) noteRead(name string, unknown *claims) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.passed[name] = true
	r.replaceClaims(name, unknown)
}

// replaceClaims replaces the claims of a copy. Clusters that waited for it are evaluated again, and all clusters if
// the copy is not usable. The caller holds the mutex.
func (r *Reconciler) replaceClaims(name string, unknown *claims) {
	before := r.unusable[name]
	if before == unknown || before != nil && unknown != nil && before.isSame(unknown) {
		return
	}
	if unknown != nil {
		r.unusable[name] = unknown
	} else {
		delete(r.unusable, name)
	}
	r.changeCompetitors()
	var waiting []string
	for of, one := range r.sets {
		if one.isHeld || unknown != nil && !unknown.pending {
			waiting = append(waiting, of)
		}
	}
	slices.Sort(waiting)
	r.recount(waiting)
}

// seen is the state of a copy when its possible claims were noted.
type seen struct {
	uid        types.UID
	generation int64
}

// sees notes that a copy's possible claims are known.
func (r *Reconciler) sees(found *v1.AddonSet) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.seen[found.Name] = seen{found.UID, found.Generation}
}

// unseen notes that a copy does not exist.
func (r *Reconciler) unseen(name string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.seen, name)
}

// checkSeen is the reason why an installation to be removed may belong to another set, by the API server's copies and
// by the sets of the plan; nil if it does not.
func (r *Reconciler) checkSeen(copies []metav1.PartialObjectMetadata, others *competitors) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for i := range copies {
		if one := &copies[i]; isCopy(one) && r.seen[one.Name] != (seen{one.UID, one.Generation}) {
			return fmt.Errorf("AddonSet %q differs from the cache: no installation is removed that may be its own", one.Name)
		}
	}
	if r.competitors != others {
		return errors.New("sets changed during the reconciliation: nothing is removed until they are read again")
	}
	return nil
}
