package addonset

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
)

// place is one cluster as a plan sees it.
type place struct {
	name string
	ref  target.Ref
	// elsewhere reports whether an installation of another cluster of the namespace has a name; nil if there is none.
	elsewhere func(name string) bool
	// found is the cluster as the cache has it.
	found *target.Description
	// labels are the cluster's labels and facts.
	labels labels.Set
	// version is that of Kubernetes; empty if unknown.
	version string
	created time.Time
	// next are the versions of an upgrade that waits for add-ons, ahead those of a pending one; usually none. waits says
	// that the control plane waits.
	next, ahead []string
	waits       bool
	// away is why the cluster can't be written to; usually empty.
	away string
	// asked are the add-ons that annotation initial-installations requests.
	asked []asked
	// deviations are those that the Cluster's owner wrote; they count for items that allow it.
	deviations []addonset.Deviation
	live       byName
}

// key is the key of the cluster in memory.
func (p *place) key() cluster.Key { return cluster.KeyOf(p.ref) }

// itemOf is the item of a name in the cluster. For a shortened name it is the matching item of a set, or otherwise
// the name itself.
func (p *place) itemOf(name string, others *competitors) string {
	if item, isItem := p.ref.ItemOf(name); isItem {
		return item
	}
	for item := range others.byItem {
		if p.ref.NameOf(item) == name {
			return item
		}
	}
	for _, one := range others.unknown {
		if item := one.itemOf(name, p.ref); item != "" {
			return item
		}
	}
	return name
}

// asked is an add-on in a namespace of the user cluster, and the name of its installation.
type asked struct{ name, addon, targetNamespace string }
