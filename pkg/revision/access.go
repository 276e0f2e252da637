package revision

import (
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// Hub is what a revision has of the hub. The credentials themselves are on no record.
type Hub struct {
	// Access is what its version asks for.
	Access []v1.Access `json:"access,omitempty"`
	// FormerAccess are the names of those that earlier revisions had, and that are still to be revoked.
	FormerAccess []string `json:"formerAccess,omitempty"`
	// Kept are Secrets in the user cluster that are in no inventory, since what is in them changes without a revision.
	Kept ownership.Inventory `json:"kept,omitempty"`
}

// HasAccess says whether a record has, or had, anything of the hub.
func (r *Record) HasAccess() bool {
	return r != nil && len(r.Access)+len(r.FormerAccess)+len(r.Kept) > 0
}

// Ask gives what a revision has of the hub that asks for something else than the one before: what is
// not asked for any more is former.
func (h Hub) Ask(access []v1.Access) Hub {
	next := Hub{Access: access, Kept: slices.Clone(h.Kept)}
	for _, name := range slices.Concat(h.FormerAccess, namesOf(h.Access)) {
		if !slices.Contains(namesOf(access), name) && !slices.Contains(next.FormerAccess, name) {
			next.FormerAccess = append(next.FormerAccess, name)
		}
	}
	return next
}

// mostFormer is as many as four versions have. Until a revision works the former ones stay, since what is superseded may use them; while
// none does, each could add to them: to the record, to live credentials, and to Secrets in the user cluster. The first firstFormer, as
// many as one version has, are those of the last revision that worked: what runs uses them.
const mostFormer, firstFormer = 16, 4

// SurplusAccess are the former credentials that are revoked before a revision works: beyond mostFormer the oldest, but for those of the
// last revision that worked.
func (h *Hub) SurplusAccess() []string {
	beyond := len(h.FormerAccess) - mostFormer
	if beyond <= 0 {
		return nil
	}
	return h.FormerAccess[firstFormer : firstFormer+beyond]
}

// AccessNames are those of all credentials that the revision has, or an earlier one had.
func (h *Hub) AccessNames() []string { return slices.Concat(namesOf(h.Access), h.FormerAccess) }

func namesOf(access []v1.Access) []string {
	names := make([]string, len(access))
	for at := range access {
		names[at] = access[at].Name
	}
	return names
}
