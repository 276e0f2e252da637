package catalogue

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Owners are the authors (see Author) of each add-on of Custom catalogues, by its name. Only they add versions to it
// and name its slot and namespace; the first of several has precedence.
type Owners map[string][]string

// OwnersLimit is the maximum size of the owners of all add-ons in etcd, in bytes (see sizeOf). etcd accepts 1.5 MiB.
const OwnersLimit = 1 << 20

// ownersPart is the divisor of the space that the others leave: an author gets this part of it for the add-ons that
// it is the first owner of. It applies to new add-ons. So there is always space for an author with few add-ons.
const ownersPart = 16

// OwnersShare is the share of the first author, in bytes, and the space that stays free when owners are determined
// again.
const OwnersShare = OwnersLimit / ownersPart

const ownersCounted = "bytes of names of add-ons and owners"

// Claims decide which authors own an add-on of Custom catalogues.
type Claims struct {
	// Owners are the present ones.
	Owners Owners
	// Former are the parts that owners had when others took over.
	Previous Previous
	// Had are the weights of catalogues when there was space for them last.
	Had Space
	// Adopt makes all authors that win a version by rank, and not only the first, owners of an add-on without owners:
	// it was merged before owners were recorded, or its owners are unknown.
	Adopt bool
	// LeftOut are the add-ons, by author, that recently had another owner. It counts only with Adopt.
	LeftOut map[string]map[string]bool
	// Held are the authors whose content is unknown at present: they give up no add-on.
	Held map[string]bool
	// Missing are the add-ons, by owner, that it has lacked only for a short time: it does not give them up yet.
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

// Keys of ConfigMap v1.ConfigMapOwners that are no add-ons: Former, and Room.
const (
	KeyPrevious = "_former"
	KeySpace    = "_room"
)

// Encode is the data of ConfigMap v1.ConfigMapOwners.
func (o Owners) Encode() map[string]string {
	data := make(map[string]string, len(o))
	for name, owners := range o {
		data[name] = strings.Join(owners, " ")
	}
	return data
}

// DecodeOwners reads the result of Encode. False: invalid entries are left out. Keys that begin with _ are no
// add-ons.
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

// Offered are the add-ons of Custom catalogues, by author, also if a Core catalogue reserves the name.
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

// space is the size of owners in etcd, in bytes.
type space struct {
	all int
	// by is the size of the add-ons of each first owner.
	by map[string]int
}

// add adds one add-on.
func (r *space) add(name string, owners []string) {
	if len(owners) > 0 {
		r.all += sizeOf(name, owners)
		r.by[owners[0]] += sizeOf(name, owners)
	}
}

// own determines the owners of each add-on of Custom catalogues, and leaves out the offers of other authors. Present
// owners get space before new ones.
func (m *merger) own() {
	used := &space{by: map[string]int{}}
	for _, name := range slices.Sorted(maps.Keys(m.claims.Owners)) {
		owners := m.ownersOf(name)
		m.freeze(name, owners)
		m.settle(name, owners)
		used.add(name, owners)
	}
	used.all += m.previous
	fresh := map[string][]string{}
	wanted := &space{by: maps.Clone(used.by)}
	for name := range m.brought {
		if owners := m.ownersOf(name); len(m.claims.Owners[name]) == 0 && len(owners) > 0 {
			fresh[name] = owners
			wanted.add(name, owners)
		}
	}
	for _, name := range fewestFirst(fresh, wanted) {
		m.admit(name, fresh[name], used)
	}
}

// fewestFirst sorts new add-ons: if there is no space for all, those of the authors with the most add-ons are
// refused.
func fewestFirst(fresh map[string][]string, wanted *space) []string {
	total := func(name string) int { return wanted.by[fresh[name][0]] }
	return slices.SortedFunc(maps.Keys(fresh), func(a, b string) int { return cmp.Or(total(a)-total(b), cmp.Compare(a, b)) })
}

// admit records the owners of a new add-on, if there is space. An author without a share left is passed over for the
// next one that has it. Shares don't count at the upgrade: merged add-ons stay.
func (m *merger) admit(name string, owners []string, used *space) {
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
	used.add(name, owners)
}

// sizeOf is the maximum size of an add-on in etcd: its name and owners in the data, and its name in managedFields.
func sizeOf(name string, owners []string) int {
	if len(owners) == 0 {
		return 0
	}
	return 2*len(name) + len(strings.Join(owners, " ")) + 16
}

// ownersOf are the present owners that did not give the add-on up, after those who take it over. Without any, the
// first by rank is the owner.
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

// winners are the authors that win a version by rank, or whose slot or namespace counts. Authors that lost to another
// owner before count only if there are no others.
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

// winsPart reports whether a part of an offer counts in addition to the offers before it, whose parts are in won.
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

// refuse leaves out an add-on if there is no space for its owners, or if its author has no share left.
func (m *merger) refuse(name, author string, have, limit int) {
	refused := &TooLargeError{Addon: name, Author: author, What: ownersCounted, Have: have, Limit: limit}
	for _, offer := range m.offers[name] {
		refused.Contributors = append(refused.Contributors, offer.source.UID)
	}
	m.Refused[name] = refused
	delete(m.offers, name)
}
