package addonset

import (
	"cmp"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Claim is a set's claim to something that two sets want: a name in a cluster, or the core add-ons.
type Claim struct {
	priority int32
	created  time.Time
	name     string
}

// ClaimOf is the claim of a set. A copy counts as old as its original set: a seed that joins later, or loses its
// copies, orders sets as all other seeds do.
func ClaimOf(set *v1.AddonSet) Claim {
	claim := Claim{set.Spec.Priority, set.CreationTimestamp.Time, set.Name}
	if set.Labels[v1.LabelRole] != v1.RoleCopy {
		return claim // an annotation makes no set older
	}
	if created, err := time.Parse(time.RFC3339, set.Annotations[v1.AnnotationCreated]); err == nil {
		claim.created = created
	}
	return claim
}

// Compare is negative if the first of two claims wins: by the higher priority, then the older set, then the name.
func (c Claim) Compare(other Claim) int {
	return cmp.Or(
		cmp.Compare(other.priority, c.priority),
		c.created.Compare(other.created),
		cmp.Compare(c.name, other.name),
	)
}

// Compare is negative if the first of two sets gets a thing that both want.
func Compare(a, b *v1.AddonSet) int { return ClaimOf(a).Compare(ClaimOf(b)) }
