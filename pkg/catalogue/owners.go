package catalogue

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Owners are the authors (see Author) of each add-on of Custom catalogues, by its name. Only they add versions to it and name its
// slot and namespace; the first of several has precedence.
type Owners map[string][]string

// OwnersLimit is what the owners of all add-ons take in etcd at most, in bytes (see sizeOf). etcd takes 1.5 MiB in all.
const OwnersLimit = 1 << 20

// ownersPart is the part, one of so many, that an author gets of what the others leave: the add-ons that it is the first owner of. It
// counts for new add-ons. So however many authors there are, one with few has room.
const ownersPart = 16

// OwnersShare is what the first author gets, in bytes, and what remains free where owners are found again.
const OwnersShare = OwnersLimit / ownersPart

const ownersCounted = "bytes of names of add-ons and owners"

// Claims decide whose an add-on of Custom catalogues is.
type Claims struct {
	// Owners are those until now.
	Owners Owners
	// Former are what owners had when others took over.
	Former Former
	// Had is what catalogues had when there was room for them last.
	Had Room
	// Adopt has an add-on without owners get all that win a version by rank, and not the first alone: it was merged
	// before there were owners, or nobody knows them any more.
	Adopt bool
	// LeftOut are the add-ons, by author, that were another's at last. It counts with Adopt only.
	LeftOut map[string]map[string]bool
	// Held are the authors whose content is not known at present: they give nothing up.
	Held map[string]bool
	// Missing are the add-ons, by owner, that it lacks for a short while only: it does not give them up yet.
	Missing map[string]map[string]bool
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

// DecodeOwners reads the result of Encode. False: entries that can't be read are left out. Keys that begin with _ are no add-ons.
func DecodeOwners(data map[string]string) (found Owners, whole bool) {
	found, whole = make(Owners, len(data)), true
	for name, text := range data {
		if strings.HasPrefix(name, "_") {
			continue
		}
		owners := strings.Fields(text)
		if !namePattern.MatchString(name) || len(owners) == 0 || strings.Join(owners, " ") != text {
			whole = false
			continue
		}
		found[name] = owners
	}
	return found, whole
}

// Offered are the add-ons of Custom catalogues, by author, also where a Core catalogue reserves the name.
func Offered(sources []*Source) map[string]map[string]bool {
	offered := map[string]map[string]bool{}
	for _, source := range sources {
		author := source.author()
		if source.Type != v1.CatalogueCore && offered[author] == nil {
			offered[author] = map[string]bool{}
		}
		for i := range source.addons {
			if source.Type != v1.CatalogueCore {
				offered[author][string(source.addons[i].addon.Name)] = true
			}
		}
	}
	return offered
}

// room is what owners take in etcd, in bytes.
type room struct {
	all int
	// by is that of the add-ons of each first owner.
	by map[string]int
}

// take adds one add-on.
func (r *room) take(name string, owners []string) {
	if len(owners) > 0 {
		r.all += sizeOf(name, owners)
		r.by[owners[0]] += sizeOf(name, owners)
	}
}

// own decides whose each add-on of Custom catalogues is, and leaves out what others offer of it. Owners that were have room
// before new ones.
func (m *merger) own() {
	used := &room{by: map[string]int{}}
	for _, name := range slices.Sorted(maps.Keys(m.claims.Owners)) {
		owners := m.ownersOf(name)
		m.freeze(name, owners)
		m.settle(name, owners)
		used.take(name, owners)
	}
	used.all += m.former
	fresh := map[string][]string{}
	wanted := &room{by: maps.Clone(used.by)}
	for name := range m.brought {
		if owners := m.ownersOf(name); len(m.claims.Owners[name]) == 0 && len(owners) > 0 {
			fresh[name] = owners
			wanted.take(name, owners)
		}
	}
	for _, name := range fewestFirst(fresh, wanted) {
		m.admit(name, fresh[name], used)
	}
}

// fewestFirst sorts new add-ons: where there is no room for all, those of authors with the most go without.
func fewestFirst(fresh map[string][]string, wanted *room) []string {
	total := func(name string) int { return wanted.by[fresh[name][0]] }
	return slices.SortedFunc(maps.Keys(fresh), func(a, b string) int { return cmp.Or(total(a)-total(b), cmp.Compare(a, b)) })
}

// admit keeps the owners of a new add-on, if there is room. One whose share is used up leaves it to the next that has it. At the
// upgrade shares don't count: what was merged stays.
func (m *merger) admit(name string, owners []string, used *room) {
	share := func(owner string) int { return used.by[owner] + sizeOf(name, []string{owner}) }
	most := func(owner string) int { return max(0, OwnersLimit-used.all+used.by[owner]) / ownersPart }
	limit := OwnersLimit
	if m.claims.Adopt {
		limit -= OwnersShare
	}
	if len(owners) == 1 && !m.claims.Adopt && share(owners[0]) > most(owners[0]) {
		next := slices.IndexFunc(m.brought[name], func(author string) bool { return share(author) <= most(author) })
		if next < 0 {
			m.refuse(name, owners[0], share(owners[0]), OwnersLimit)
			return
		}
		owners = m.brought[name][next : next+1]
	}
	if have := used.all + sizeOf(name, owners); have > limit {
		m.refuse(name, "", have, limit)
		return
	}
	m.settle(name, owners)
	used.take(name, owners)
}

// sizeOf is what an add-on takes in etcd at most: its name and owners in the data, and its name in managedFields.
func sizeOf(name string, owners []string) int {
	if len(owners) == 0 {
		return 0
	}
	return 2*len(name) + len(strings.Join(owners, " ")) + 16
}

// ownersOf are those who were and did not give it up, behind those who take it over. Where there are none, the first by rank is
// the owner.
func (m *merger) ownersOf(name string) []string {
	brought, stored := m.brought[name], m.claims.Owners[name]
	stay := slices.DeleteFunc(slices.Clone(stored), func(owner string) bool {
		return !m.claims.Held[owner] && !m.claims.Missing[owner][name] && !slices.Contains(brought, owner)
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

// winners are the authors that win a version by rank, or whose slot or namespace counts. Those that another was preferred to before
// are so only where there are no others.
func (m *merger) winners(name string) (found []string) {
	wasLeftOut := func(offer offer) bool { return m.claims.LeftOut[offer.source.author()][name] }
	offers := slices.DeleteFunc(slices.Clone(m.offers[name]), wasLeftOut)
	if len(offers) == 0 {
		offers = m.offers[name]
	}
	won := map[string]bool{}
	for _, offer := range offers {
		if winsPart(offer.addon, won) && !slices.Contains(found, offer.source.author()) {
			found = append(found, offer.source.author())
		}
	}
	return found
}

// winsPart says whether something of an offer counts beside those before it, whose parts are in won.
func winsPart(addon *sourceAddon, won map[string]bool) (wins bool) {
	part := func(key string, isNamed bool) {
		wins = wins || isNamed && !won[key]
		won[key] = won[key] || isNamed
	}
	part("slot", addon.addon.Slot != "")
	part("namespace", addon.addon.TargetNamespace != "")
	for i := range addon.versions {
		part("version "+addon.versions[i].key, true)
	}
	return wins
}

// settle keeps the offers of an add-on's owners, in their order.
func (m *merger) settle(name string, owners []string) {
	if len(owners) > 0 {
		m.Owners[name] = owners
	}
	if m.reserved[name] != nil || len(owners) == 0 {
		return
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
}

// refuse leaves an add-on out for whose owners there is no room, or whose author has no share left.
func (m *merger) refuse(name, author string, have, limit int) {
	refused := &TooLargeError{Addon: name, Author: author, What: ownersCounted, Have: have, Limit: limit}
	for _, offer := range m.offers[name] {
		refused.Contributors = append(refused.Contributors, offer.source.UID)
	}
	m.Refused[name] = refused
	delete(m.offers, name)
}
