package revision

import (
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// Hub has a revision's access to the hub. The credentials themselves are on no record.
type Hub struct {
	// Access is the access that its version requests.
	Access []v1.Access `json:"access,omitempty"`
	// PreviousAccess are the names of earlier revisions' credentials that are still to be revoked.
	PreviousAccess []string `json:"formerAccess,omitempty"`
	// ManagedSecrets are Secrets in the user cluster that are in no inventory, since their content changes without a revision.
	ManagedSecrets ownership.Inventory `json:"kept,omitempty"`
}

// HasAccess says whether a record has, or had, credentials for the hub.
func (r *Record) HasAccess() bool {
	return r != nil && len(r.Access)+len(r.PreviousAccess)+len(r.ManagedSecrets) > 0
}

// Ask returns the Hub of the next revision, which requests this access: access that is no longer requested becomes
// PreviousAccess.
func (h Hub) Ask(access []v1.Access) Hub {
	next := Hub{Access: access, ManagedSecrets: slices.Clone(h.ManagedSecrets)}
	for _, name := range slices.Concat(h.PreviousAccess, namesOf(h.Access)) {
		if !slices.Contains(namesOf(access), name) && !slices.Contains(next.PreviousAccess, name) {
			next.PreviousAccess = append(next.PreviousAccess, name)
		}
	}
	return next
}

// mostPrevious is the maximum of four versions. Until a revision works the earlier credentials stay, since superseded objects may use
// them; while none works, each revision could add some: to the record, to live credentials, and to Secrets in the user cluster. The
// first firstPrevious, the maximum of one version, are those of the last revision that worked: running objects use them.
const mostPrevious, firstPrevious = 16, 4

// SurplusAccess are the earlier credentials that are revoked before a revision works: the oldest beyond mostPrevious,
// except for those of the last revision that worked.
func (h *Hub) SurplusAccess() []string {
	beyond := len(h.PreviousAccess) - mostPrevious
	if beyond <= 0 {
		return nil
	}
	return h.PreviousAccess[firstPrevious : firstPrevious+beyond]
}

// AccessNames are those of all credentials that the revision has, or an earlier one had.
func (h *Hub) AccessNames() []string { return slices.Concat(namesOf(h.Access), h.PreviousAccess) }

func namesOf(access []v1.Access) []string {
	names := make([]string, len(access))
	for at := range access {
		names[at] = access[at].Name
	}
	return names
}
