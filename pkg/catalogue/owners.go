package catalogue

import (
	"maps"
	"slices"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Owners are the authors (see Author) of each add-on of Custom catalogues, by its name. Only they add versions to it and name its
// slot and namespace; the first of several has precedence.
type Owners map[string][]string

// OwnersLimit is the size of the names of all add-ons and their owners in bytes; a ConfigMap takes 1 MiB.
const OwnersLimit = 900 << 10

const ownersCounted = "bytes of names of add-ons and owners"

// Claims decide whose an add-on of Custom catalogues is.
type Claims struct {
	// Owners are those until now.
	Owners Owners
	// Adopt has an add-on without owners get all that win a version by rank, and not the first alone: it was merged
	// before there were owners, or nobody knows them any more.
	Adopt bool
	// LeftOut are the add-ons, by author, that were another's at last. It counts with Adopt only.
	LeftOut map[string]map[string]bool
	// Held are the authors whose content is not known at present: they give nothing up.
	Held map[string]bool
	// TakeOver are the add-ons, by author, that it may take over: annotation v1.AnnotationTakeOver.
	TakeOver map[string]map[string]bool
}

// TakesOver are the add-ons that a catalogue's annotation take-over names, separated by commas.
func TakesOver(catalogue *v1.AddonCatalogue) map[string]bool {
	named := map[string]bool{}
	for name := range strings.SplitSeq(catalogue.Annotations[v1.AnnotationTakeOver], ",") {
		if name = strings.TrimSpace(name); name != "" {
			named[name] = true
		}
	}
	return named
}

// Encode is the data of ConfigMap v1.ConfigMapOwners.
func (o Owners) Encode() map[string]string {
	data := make(map[string]string, len(o))
	for name, owners := range o {
		data[name] = strings.Join(owners, " ")
	}
	return data
}

// DecodeOwners reads the result of Encode. False: entries that can't be read are left out.
func DecodeOwners(data map[string]string) (found Owners, whole bool) {
	found, whole = make(Owners, len(data)), true
	for name, text := range data {
		owners := strings.Fields(text)
		if !namePattern.MatchString(name) || len(owners) == 0 || strings.Join(owners, " ") != text {
			whole = false
			continue
		}
		found[name] = owners
	}
	return found, whole
}

// own decides whose each add-on of Custom catalogues is, and leaves out what others offer of it. Owners that were have room
// before new ones.
func (m *merger) own() {
	size := 0
	for _, name := range slices.Sorted(maps.Keys(m.claims.Owners)) {
		size += m.settle(name, m.ownersOf(name))
	}
	for _, name := range slices.Sorted(maps.Keys(m.brought)) {
		if len(m.claims.Owners[name]) > 0 {
			continue
		}
		owners := m.ownersOf(name)
		if have := size + sizeOf(name, owners); have > OwnersLimit {
			m.refuse(name, have)
			continue
		}
		size += m.settle(name, owners)
	}
}

func sizeOf(name string, owners []string) int {
	if len(owners) == 0 {
		return 0
	}
	return len(name) + len(strings.Join(owners, " "))
}

// ownersOf are those who were and did not give it up, behind those who take it over. Where there are none, the first by rank is
// the owner.
func (m *merger) ownersOf(name string) []string {
	brought, stored := m.brought[name], m.claims.Owners[name]
	stay := slices.DeleteFunc(slices.Clone(stored), func(owner string) bool {
		return !m.claims.Held[owner] && !slices.Contains(brought, owner)
	})
	if m.reserved[name] != nil {
		return stay
	}
	if len(stored) == 0 && m.claims.Adopt {
		stay = m.winners(name)
	}
	takes := func(author string) bool { return m.claims.TakeOver[author][name] }
	var owners, rest []string
	for _, author := range brought {
		if takes(author) && !slices.Contains(stay, author) {
			owners = append(owners, author)
		}
	}
	for _, author := range stay {
		if takes(author) {
			owners = append(owners, author)
			continue
		}
		rest = append(rest, author)
	}
	owners = append(owners, rest...)
	if len(owners) == 0 {
		return brought[:min(1, len(brought))]
	}
	return owners
}

// winners are the authors that win a version by rank. Those that another was preferred to before win only where there are no others.
func (m *merger) winners(name string) (found []string) {
	wasLeftOut := func(offer offer) bool { return m.claims.LeftOut[offer.source.author()][name] }
	offers := slices.DeleteFunc(slices.Clone(m.offers[name]), wasLeftOut)
	if len(offers) == 0 {
		offers = m.offers[name]
	}
	won := map[string]bool{}
	for _, offer := range offers {
		for i := range offer.addon.versions {
			key := offer.addon.versions[i].key
			if !won[key] && !slices.Contains(found, offer.source.author()) {
				found = append(found, offer.source.author())
			}
			won[key] = true
		}
	}
	return found
}

// settle keeps the offers of an add-on's owners, in their order, and returns the size of the names in bytes.
func (m *merger) settle(name string, owners []string) int {
	if len(owners) > 0 {
		m.Owners[name] = owners
	}
	if m.reserved[name] != nil || len(owners) == 0 {
		return sizeOf(name, owners)
	}
	place := func(offer offer) int { return slices.Index(owners, offer.source.author()) }
	m.offers[name] = slices.DeleteFunc(m.offers[name], func(offer offer) bool {
		if place(offer) >= 0 {
			return false
		}
		m.conflict(offer.source, v1.CatalogueConflict{Addon: name, WonBy: owners[0], Reason: v1.ReasonOwnedByOther})
		return true
	})
	slices.SortStableFunc(m.offers[name], func(a, b offer) int { return place(a) - place(b) })
	if len(m.offers[name]) == 0 {
		delete(m.offers, name)
	}
	return sizeOf(name, owners)
}

// refuse leaves an add-on out for whose owners there is no room.
func (m *merger) refuse(name string, have int) {
	refused := &TooLargeError{Addon: name, What: ownersCounted, Have: have, Limit: OwnersLimit}
	for _, offer := range m.offers[name] {
		refused.Contributors = append(refused.Contributors, offer.source.UID)
	}
	m.Refused[name] = refused
	delete(m.offers, name)
}
