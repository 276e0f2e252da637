package distributor

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// contribution is the part that one catalogue has in the merge; that of a catalogue in git is the sum of what was generated
// from it.
type contribution struct {
	digests   map[string]string
	secrets   []string
	tooLarge  []string
	conflicts []v1.CatalogueConflict
}

func contributionsOf(p *pass) map[types.UID]*contribution {
	parts := map[types.UID]*contribution{}
	part := func(uid types.UID) *contribution {
		if parts[uid] == nil {
			parts[uid] = &contribution{digests: map[string]string{}}
		}
		return parts[uid]
	}
	for name, addon := range p.merged.Addons {
		secrets := namedBy(&addon.Spec)
		for _, uid := range addon.Contributors {
			part(uid).digests[name] = addon.Digest
			part(uid).secrets = append(part(uid).secrets, secrets...)
		}
	}
	for _, refused := range p.merged.Refused {
		for _, uid := range refused.Contributors {
			part(uid).tooLarge = append(part(uid).tooLarge, refused.Error())
		}
	}
	for uid, conflicts := range p.merged.Conflicts {
		part(uid).conflicts = conflicts
	}
	for _, reading := range p.readings {
		if child, parent := parts[reading.object.UID], reading.parent(); child != nil && parent != "" {
			part(parent).add(child)
		}
	}
	return parts
}

func (c *contribution) add(child *contribution) {
	maps.Copy(c.digests, child.digests)
	c.secrets = slices.Concat(c.secrets, child.secrets)
	c.tooLarge = slices.Concat(c.tooLarge, child.tooLarge)
	c.conflicts = slices.Concat(c.conflicts, child.conflicts)
}

// sortedConflicts are in an order that does not depend on that of the parts.
func (c *contribution) sortedConflicts() []v1.CatalogueConflict {
	if c == nil {
		return nil
	}
	return slices.SortedStableFunc(slices.Values(c.conflicts), func(a, b v1.CatalogueConflict) int {
		return cmp.Compare(a.Addon, b.Addon)
	})
}
