package pullsecret

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// Copy is one copy in a user cluster.
type Copy struct {
	// Entry has the place and the fields that a survey compares. Without UID the copy is not known to be written. Its
	// content is the keyed digest of what was written.
	ownership.Entry
	// Nonce is on the copy, and was recorded before it: no other client knew it when it was written.
	Nonce string `json:"nonce"`
	// Left says that the last installation that needed it was released with its objects. The copy stays unchanged until
	// another one needs it.
	Left bool `json:"left,omitempty"`
}

// Use is an installation's need for copies.
type Use struct {
	// Revision is the revision whose objects need them.
	Revision   int      `json:"revision"`
	Namespaces []string `json:"namespaces"`
	// Hooked are those among Namespaces that only hooks need. Hooks may create them.
	Hooked []string `json:"hooked,omitempty"`
	// Previous are the namespaces of the previous revision, while this one is applied.
	Previous []string `json:"former,omitempty"`
}

// all are the namespaces that must have copies.
func (u Use) all() []string { return slices.Concat(u.Namespaces, u.Previous) }

// IsFirm says whether objects need a copy in a namespace, and not only hooks or objects that are being removed.
func (u Use) IsFirm(namespace string) bool {
	return slices.Contains(u.Namespaces, namespace) && !slices.Contains(u.Hooked, namespace)
}

func (u Use) equal(other Use) bool {
	return u.Revision == other.Revision && slices.Equal(u.Namespaces, other.Namespaces) &&
		slices.Equal(u.Hooked, other.Hooked) && slices.Equal(u.Previous, other.Previous)
}

// Copies are the copies in one user cluster. The zero value has none.
type Copies struct {
	// Origin is the UID of the Cluster that had the user cluster first: see package cluster.
	Origin types.UID `json:"origin"`
	All    []Copy    `json:"copies,omitempty"`
	// Uses by installation; an installation without namespaces has none.
	Uses map[string]Use `json:"uses,omitempty"`
}

const (
	// MaxNamespaces is the maximum of namespaces in which one installation gets copies.
	MaxNamespaces = 100
	// MaxLeft is the maximum of recorded copies that no installation needs.
	MaxLeft = 200
)

// Need records what an installation needs from a revision on, and says whether that is new.
func (c *Copies) Need(installation string, use Use) (changed bool) {
	use.Namespaces = bounded(use.Namespaces)
	before, had := c.Uses[installation]
	if had == (len(use.all()) > 0) && before.equal(use) {
		return false
	}
	if len(use.all()) == 0 {
		delete(c.Uses, installation)
		return had
	}
	if c.Uses == nil {
		c.Uses = map[string]Use{}
	}
	c.Uses[installation] = use
	for at := range c.All {
		c.All[at].Left = c.All[at].Left && !c.needs(c.All[at].Namespace)
	}
	return true
}

// Leave records that a deleted installation, whose objects stay in the user cluster, needs nothing: the copies that
// no other installation needs stay too. If an installation is created again, the record still knows them. It says whether
// anything changed.
func (c *Copies) Leave(installation string) (changed bool) {
	use, had := c.Uses[installation]
	if !had {
		return false
	}
	delete(c.Uses, installation)
	left := 0
	for at, one := range c.All {
		c.All[at].Left = one.Left || slices.Contains(use.all(), one.Namespace) && !c.needs(one.Namespace)
		if c.All[at].Left {
			left++
		}
	}
	c.All = slices.DeleteFunc(c.All, func(one Copy) bool { // the oldest are first
		if !one.Left || left <= MaxLeft {
			return false
		}
		left--
		return true
	})
	return true
}

// bounded are sorted namespaces, each once, up to the maximum.
func bounded(namespaces []string) []string {
	sorted := slices.Compact(slices.Sorted(slices.Values(namespaces)))
	return sorted[:min(len(sorted), MaxNamespaces)]
}

// Roll is the need of an installation while a revision is applied, and until objects that only the previous one had
// are deleted: the needs of the previous one stay.
func (c *Copies) Roll(installation string, rolled Use) Use {
	before, had := c.Uses[installation]
	switch {
	case had && before.Revision == rolled.Revision:
		rolled.Previous = before.Previous
	case had:
		rolled.Previous = bounded(before.all())
	}
	return rolled
}

// Plan has the changes for one installation.
type Plan struct {
	// Write are indices in All.
	Write []int
	Drop  []Copy
}

// Plan compares the copies that concern an installation with the original. It adds missing copies, without UID and
// nonce. Copies in namespaces that no installation needs are dropped, unless they were left; and, unless copies are
// kept, those of another name or without original. Drifted are copies that differ in the user cluster from what was
// written.
func (c *Copies) Plan(installation string, original Original, drifted []ownership.Key) (plan Plan) {
	name, digest := original.Name, original.Digest
	own, has := c.Uses[installation].all(), map[string]bool{}
	c.All = slices.DeleteFunc(c.All, func(one Copy) bool {
		isOutdated := !original.Keeps && (digest == "" || one.Name != name)
		if c.isSpare(one) || isOutdated && slices.Contains(own, one.Namespace) {
			plan.Drop = append(plan.Drop, one)
			return true
		}
		has[one.Namespace] = has[one.Namespace] || one.Name == name
		return false
	})
	if digest == "" {
		return plan
	}
	for _, namespace := range bounded(own) {
		if !has[namespace] {
			key := ownership.Key{Kind: "Secret", Namespace: namespace, Name: name}
			c.All = append(c.All, Copy{Entry: ownership.Entry{Key: key, Version: "v1"}})
		}
	}
	for at, one := range c.All {
		isOwn := slices.Contains(own, one.Namespace)
		if isOwn && (one.UID == "" || one.Content != digest || slices.Contains(drifted, one.Key)) {
			plan.Write = append(plan.Write, at)
		}
	}
	return plan
}

// Of are the copies in namespaces of an installation that are known to be written.
func (c *Copies) Of(installation string) (written ownership.Inventory) {
	own := c.Uses[installation].all()
	for _, one := range c.All {
		if one.UID != "" && slices.Contains(own, one.Namespace) {
			written = append(written, one.Entry)
		}
	}
	return written
}

// Alone are the UIDs of copies that no other installation needs.
func (c *Copies) Alone(installation string) (alone []types.UID) {
	others := Copies{Uses: maps.Clone(c.Uses)}
	delete(others.Uses, installation)
	for _, one := range c.All {
		if one.UID != "" && !others.needs(one.Namespace) {
			alone = append(alone, one.UID)
		}
	}
	return alone
}

// isSpare says whether no installation needs a copy, and it was not left either.
func (c *Copies) isSpare(one Copy) bool { return !one.Left && !c.needs(one.Namespace) }

func (c *Copies) needs(namespace string) bool {
	for _, use := range c.Uses {
		if slices.Contains(use.all(), namespace) {
			return true
		}
	}
	return false
}
