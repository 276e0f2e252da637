package revision

import (
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/access/rights"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// Hub has a revision's access to the hub. The credentials themselves are on no record.
type Hub struct {
	// Access is the access that its version requests.
	Access []v1.Access `json:"access,omitempty"`
	// PreviousAccess are the names of earlier revisions' credentials that are still to be revoked.
	PreviousAccess []string `json:"formerAccess,omitempty"`
	// PreviousSecrets are names of Secrets, as in secretName, that only earlier revisions' access has, and that
	// PreviousAccess does not tell: the Secrets in the user cluster are still to be removed.
	PreviousSecrets []string `json:"formerSecrets,omitempty"`
	// ManagedSecrets are Secrets in the user cluster that are in no inventory, since their content changes without a revision.
	ManagedSecrets ownership.Inventory `json:"kept,omitempty"`
}

// HasAccess says whether a record has, or had, credentials for the hub.
func (r *Record) HasAccess() bool {
	return r != nil && len(r.Access)+len(r.PreviousAccess)+len(r.PreviousSecrets)+len(r.ManagedSecrets) > 0
}

// NamesAccess says whether a version named the Secret or the subject of a credential.
func (h *Hub) NamesAccess() bool {
	isNamed := func(one v1.Access) bool { return one.SecretName != "" || one.Subject != nil }
	return len(h.PreviousSecrets) > 0 || slices.ContainsFunc(h.Access, isNamed)
}

// Ask returns the Hub of the next revision, which requests this access: access that is no longer requested becomes
// PreviousAccess.
func (h Hub) Ask(access []v1.Access) Hub {
	return Hub{
		Access: access, ManagedSecrets: slices.Clone(h.ManagedSecrets),
		PreviousAccess:  without(slices.Concat(h.PreviousAccess, namesOf(h.Access)), namesOf(access)),
		PreviousSecrets: without(slices.Concat(h.PreviousSecrets, h.renamed(access)), secretsOf(access)),
	}
}

// installationMark stands for the installation's name, as in secretName.
const installationMark = "$(installation)"

// renamed are the Secrets of this revision that its names of access do not tell: a version named them, or the next one
// names another Secret for the same access.
func (h Hub) renamed(next []v1.Access) (secrets []string) {
	for _, one := range h.Access {
		isRenamed := func(other v1.Access) bool { return other.Name == one.Name && other.SecretName != one.SecretName }
		if one.SecretName != "" || slices.ContainsFunc(next, isRenamed) {
			secrets = append(secrets, rights.SecretName(installationMark, one))
		}
	}
	return secrets
}

// without returns the texts that are not among others, each once.
func without(texts, others []string) (rest []string) {
	for _, text := range texts {
		if !slices.Contains(others, text) && !slices.Contains(rest, text) {
			rest = append(rest, text)
		}
	}
	return rest
}

// mostPrevious is the maximum of four versions. Until a revision works the earlier credentials stay, since superseded objects may use
// them; while none works, each revision could add some: to the record, to live credentials, and to Secrets in the user cluster. The
// first firstPrevious, the maximum of one version, are those of the last revision that worked: running objects use them.
const mostPrevious, firstPrevious = 16, 4

// SurplusAccess are the earlier credentials that are revoked before a revision works: the oldest beyond mostPrevious,
// except for those of the last revision that worked.
func (h *Hub) SurplusAccess() []string { return surplus(h.PreviousAccess) }

// SurplusSecrets are the values of secretName that go with them.
func (h *Hub) SurplusSecrets() []string { return surplus(h.PreviousSecrets) }

func surplus(previous []string) []string {
	beyond := len(previous) - mostPrevious
	if beyond <= 0 {
		return nil
	}
	return previous[firstPrevious : firstPrevious+beyond]
}

// AccessNames are those of all credentials that the revision has, or an earlier one had.
func (h *Hub) AccessNames() []string { return slices.Concat(namesOf(h.Access), h.PreviousAccess) }

// secretsOf are the names of the Secrets, as in secretName.
func secretsOf(access []v1.Access) (names []string) {
	for _, one := range access {
		names = append(names, rights.SecretName(installationMark, one))
	}
	return names
}

func namesOf(access []v1.Access) []string {
	names := make([]string, len(access))
	for at := range access {
		names[at] = access[at].Name
	}
	return names
}
