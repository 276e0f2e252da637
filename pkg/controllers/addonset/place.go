package addonset

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/target"
)

// place is one cluster as a plan sees it.
type place struct {
	name string
	ref  target.Ref
	// elsewhere says whether an installation of another cluster of the namespace has a name; nil: none
	// has.
	elsewhere func(name string) bool
	// found is the cluster as the cache has it.
	found *target.Description
	// labels and facts.
	labels labels.Set
	// version of Kubernetes; empty: not known.
	version string
	created time.Time
	// next are the versions of an upgrade that waits for us, ahead those of one that is pending; none as
	// a rule. Waits says that the control plane waits.
	next, ahead []string
	waits       bool
	// away is why the cluster can't be written to; empty as a rule.
	away string
	// asked are what annotation initial-installations asks for.
	asked []asked
	live  byName
}

// key is what is kept of the cluster by.
func (p *place) key() cluster.Key { return cluster.KeyOf(p.ref) }

// itemOf is the item that has a name in the cluster. Of a name that was cut, it is one of those that
// sets have, else the name.
func (p *place) itemOf(name string, beside *rivals) string {
	if item, isTold := p.ref.ItemOf(name); isTold {
		return item
	}
	for item := range beside.byItem {
		if p.ref.NameOf(item) == name {
			return item
		}
	}
	for _, one := range beside.unsure {
		if item := one.itemOf(name, p.ref); item != "" {
			return item
		}
	}
	return name
}

// asked is an add-on in a namespace of the user cluster, and the name of its installation.
type asked struct{ name, addon, targetNamespace string }
