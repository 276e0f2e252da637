package addonset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/addonset"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/installation"
	"github.com/trellis-addons/trellis/pkg/rollout"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/waves"
)

// rivals are all sets of a seed, by the names of their items, each list in the order in which they
// have the name.
type rivals struct {
	sets   map[string]*set
	byItem map[string][]*set
	// unsure are what copies may want that can't be gone by now.
	unsure []*claims
}

func newRivals(sets map[string]*set) *rivals {
	made := &rivals{sets: sets, byItem: map[string][]*set{}}
	for _, one := range sets {
		for name := range one.byName {
			made.byItem[name] = append(made.byItem[name], one)
		}
	}
	for _, wanting := range made.byItem {
		slices.SortFunc(wanting, (*set).before)
	}
	return made
}

// step is what is to be done to one installation.
type step struct {
	item string
	kind v1.ChangeKind
	// live is nil for an installation that is to be made.
	live *v1.AddonInstallation
	// target is what is applied, shared among clusters; nil of a removal. Grant is the right to values
	// of the platform beside it; empty where there are none.
	target *prepared
	grant  string
	// repair says that only what others changed is put back, which is no move.
	repair   bool
	from, to string
}

// liveName is the name of the installation; empty: there is none.
func (s *step) liveName() string {
	if s.live == nil {
		return ""
	}
	return s.live.Name
}

// intent is what is applied in a cluster.
func (s *step) intent(in target.Ref) installation.Intent {
	made := s.target.intentIn(in, s.live)
	if s.grant != "" {
		made.Annotations = maps.Clone(made.Annotations)
		made.Annotations[v1.AnnotationPlatformValues] = s.grant
	}
	return made
}

// isRight says whether what is there is as it is to be.
func (s *step) isRight(in target.Ref) bool {
	if s.grant == "" && in.IsKKP() {
		return installation.IsRight(s.live, &s.target.intent, s.target.digest)
	}
	wanted := s.intent(in)
	return installation.IsRight(s.live, &wanted, s.target.digest)
}

// plan is what one set wants of one cluster.
type plan struct {
	presence waves.Presence
	steps    []step
	blocked  []rollout.Trouble
	// mine is what the installations say that the set has in the cluster and leaves to nobody.
	mine []*installation.Report
	// unfit says that what is applied does not fit the cluster's Kubernetes any more.
	unfit bool
	// isEarly says that the set has items before the cluster's Kubernetes is the one that it is for.
	isEarly bool
	// isHeld says that something waits for a copy that can't be gone by.
	isHeld bool
	// awaited are items that another set has the name of and has not made yet, with that set's name.
	awaited map[string]string
}

func (p *plan) block(item, reason, message string) {
	p.blocked = append(p.blocked, rollout.Trouble{Item: item, Reason: reason, Message: message})
}

func (p *plan) await(item, holder string) {
	if p.awaited == nil {
		p.awaited = map[string]string{}
	}
	p.awaited[item] = holder
}

// planner plans for one set.
type planner struct {
	*resolver
	rivals *rivals
}

// planFor plans what a set wants of a cluster. It looks at nothing but its arguments, and its
// result depends on no order among sets, clusters and installations.
func (p planner) planFor(in *place) plan {
	result := plan{presence: presenceOf(p.set, in, p.offers)}
	if result.presence == waves.Unknown {
		for _, live := range p.owned(in, nil) {
			result.mine = append(result.mine, &live.report)
		}
		return result
	}
	if comesWith(p.set, in, p.offers) {
		p.wantEarly(&result, in)
		result.blockDependents(p.set, in.ref)
		return result
	}
	var items map[string]*item
	if result.presence == waves.Present {
		items, result.mine = p.set.byName, make([]*installation.Report, 0, len(p.set.items))
	}
	for i := range p.set.items {
		if of := &p.set.items[i]; result.presence == waves.Present {
			p.want(&result, of, in)
		}
	}
	result.blockDependents(p.set, in.ref)
	for _, live := range p.owned(in, items) {
		p.letGo(&result, live, in)
	}
	return result
}

// blockDependents blocks what is to be made and depends on an item that is not there, being blocked
// or for another set to make, in its own time: it would wait for that, and be taken for a failure of
// the roll-out.
func (p *plan) blockDependents(of *set, in target.Ref) {
	if len(p.blocked) == 0 && len(p.awaited) == 0 {
		return
	}
	missing := map[string]bool{}
	for _, one := range p.blocked {
		missing[one.Item] = !slices.ContainsFunc(p.mine, func(said *installation.Report) bool { return said.Live.Name == in.NameOf(one.Item) })
	}
	for name := range p.awaited {
		missing[name] = true
	}
	for before := -1; before != len(p.blocked); {
		before = len(p.blocked)
		p.steps = slices.DeleteFunc(p.steps, func(s step) bool {
			if s.live != nil || of.byName[s.item] == nil {
				return false
			}
			for _, needed := range of.byName[s.item].DependsOn {
				if missing[string(needed)] {
					p.block(s.item, v1.ReasonDependencyMissing, fmt.Sprintf("it depends on item %q, which %s", needed, p.whyMissing(string(needed))))
					missing[s.item] = true
					return true
				}
			}
			return false
		})
	}
}

func (p *plan) whyMissing(item string) string {
	if holder := p.awaited[item]; holder != "" {
		return fmt.Sprintf("AddonSet %q has the name of, and has not made in this cluster yet", holder)
	}
	return "is blocked in this cluster"
}

// presenceOf a set in a cluster.
func presenceOf(of *set, in *place, from *offers) waves.Presence {
	if of.deleting || !of.selector.Matches(in.labels) {
		return waves.Absent
	}
	for _, one := range []struct {
		constraint *catalogue.Range
		version    string
	}{{of.k8s, in.version}, {of.kkp, cluster.KKPVersionFor(in.ref, from.kkp)}} {
		if one.constraint == nil {
			continue
		}
		version, known := catalogue.PlatformVersion(one.version)
		if !known {
			return waves.Unknown
		}
		if !one.constraint.Contains(version, from.preReleases) {
			return waves.Absent
		}
	}
	return waves.Present
}

// owned are the installations in a cluster that the set made, by name, but for those of some items.
func (p planner) owned(in *place, but map[string]*item) []*sight {
	var found []*sight
	for name, live := range in.live {
		if live.isOf(p.set.name) && (len(but) == 0 || but[in.itemOf(name, p.rivals)] == nil) {
			found = append(found, live)
		}
	}
	slices.SortFunc(found, func(a, b *sight) int { return strings.Compare(a.asked.name, b.asked.name) })
	return found
}

// holder is the set that has a name in a cluster; nil: none wants it. Own is the presence of the
// planner's set, where it is known. One that is for the cluster's next Kubernetes goes first.
func (p planner) holder(name string, in *place, own waves.Presence) *set {
	first, _ := addonset.Holder(p.rivals.byItem[name], func(one *set) bool {
		return p.isEarly(one, name, in)
	}, func(one *set) bool {
		return p.isPresent(one, in, own)
	})
	return first
}

// isPresent says whether a set is about a cluster, or may be. Own is as for holder.
func (p planner) isPresent(one *set, in *place, own waves.Presence) bool {
	if one != p.set || own == waves.Unknown {
		own = presenceOf(one, in, p.offers)
	}
	return own != waves.Absent
}

// want plans one item of the set in a cluster that the set is about.
func (p planner) want(result *plan, of *item, in *place) {
	name := string(of.Name)
	live := in.live[in.ref.NameOf(name)]
	if holder := p.holder(name, in, result.presence); holder != nil && holder.name != p.set.name {
		p.leaveTo(holder, result, name, in)
		return
	}
	if first := p.comesFirst(name, in); first != nil && (live == nil || !live.isOf(p.set.name)) {
		result.hold(name, first, "comes before this one")
		return
	}
	if live == nil {
		if reason, message := p.standsAlready(of, in); reason != "" {
			result.block(name, reason, message)
			return
		}
		p.aim(result, of, aimed{}, in)
		return
	}
	isMine := live.set == p.set.name
	if isMine {
		result.mine = append(result.mine, &live.report)
	}
	if isMine && live.report.IsGoing { // it is made again once it is gone
		return
	}
	if reason, message := p.refusal(of, live, in.ref); reason != "" {
		result.block(name, reason, message)
		return
	}
	p.aim(result, of, aimed{live, isMine}, in)
}

// leaveTo another set an item of which that has the name.
func (p planner) leaveTo(holder *set, result *plan, name string, in *place) {
	switch live := in.live[in.ref.NameOf(name)]; {
	case live == nil:
		result.await(name, holder.name)
	case live.isOf(p.set.name):
		p.letGo(result, live, in)
	}
}

// refusal says why an item can't have the installation that has its name, and which set made it;
// empty: it can.
func (p planner) refusal(of *item, live *sight, in target.Ref) (reason, message string) {
	owner := live.set
	switch {
	case owner == "" || p.rivals.sets[owner] == nil:
		return v1.ReasonNameTaken, fmt.Sprintf("installation %q was not made by this set and is left alone: rename the item, or %s",
			live.Name, takeOver)
	case live.report.IsGoing:
		return v1.ReasonNameTaken, fmt.Sprintf("installation %q of AddonSet %q is being removed", live.Name, owner)
	case goesOver(live, of, in):
		return "", ""
	case owner == p.set.name:
		return addonset.CannotChange(live.Name,
			addonset.Fixed{Addon: live.asked.addon, TargetNamespace: live.asked.targetNamespace, ReleaseName: live.release},
			addonset.Fixed{Addon: of.addon(), TargetNamespace: cmp.Or(of.TargetNamespace, live.asked.targetNamespace), ReleaseName: of.ReleaseName},
			p.offers.entries[of.addon()] != nil)
	}
	return v1.ReasonNameTaken, fmt.Sprintf(
		"AddonSet %q has installation %q with another add-on, releaseName or targetNamespace: it waits for its removal", owner, live.Name)
}

// takeOver is how a set gets what an installation of others applied, which stays where it is.
const takeOver = "have the set take over what it applied: write allow: [Adopt] into the item, " +
	"set deletionPolicy Orphan on the installation and delete it"

// goesOver says whether what one set made can go over to an item of another by its label alone.
func goesOver(live *sight, to *item, in target.Ref) bool {
	// Outside of KKP an item that names no release goes by what is there.
	isRelease := live.release == to.ReleaseName || to.ReleaseName == "" && !in.IsKKP()
	isPlace := to.TargetNamespace == "" || live.asked.targetNamespace == to.TargetNamespace
	return live.asked.addon == to.addon() && isPlace && isRelease
}

// standsAlready says whether the cluster has the add-on in that namespace by somebody else, or asks
// for it itself.
func (p planner) standsAlready(of *item, in *place) (reason, message string) {
	if name := in.ref.NameOf(string(of.Name)); in.elsewhere != nil && in.elsewhere(name) {
		return v1.ReasonNameTaken, fmt.Sprintf("installation %q is one of another cluster", name)
	}
	namespace := p.landingOf(of, nil).Namespace
	for _, name := range slices.Sorted(maps.Keys(in.live)) {
		live := in.live[name]
		if live.isOf(p.set.name) && p.set.byName[in.itemOf(name, p.rivals)] != nil { // the set has the add-on twice, as it says
			continue
		}
		if live.asked.addon == of.addon() && live.asked.targetNamespace == namespace {
			way := ": give the item another targetNamespace, or " + takeOver
			if p.rivals.sets[live.set] != nil {
				way = fmt.Sprintf(", by AddonSet %q: give one of the two items another targetNamespace, or take it out of its set", live.set)
			}
			return v1.ReasonNameTaken, fmt.Sprintf("installation %q has add-on %q in namespace %q already%s", name, of.addon(), namespace, way)
		}
	}
	for _, one := range in.asked {
		if one.name == string(of.Name) || one.addon == of.addon() && one.targetNamespace == namespace {
			return v1.ReasonNameTaken, fmt.Sprintf("the Cluster's annotation %s asks for add-on %q, or for the name",
				v1.AnnotationInitialInstallations, one.addon)
		}
	}
	return "", ""
}

// aimed is the installation that has an item's name, and whether the set made it. Without one there
// is none.
type aimed struct {
	live   *sight
	isMine bool
}

// aim plans the target of an item: what is there against what it is to be.
func (p planner) aim(result *plan, of *item, at aimed, in *place) {
	name, live := string(of.Name), at.live
	if missing := p.offers.missing(of); missing != "" {
		result.block(name, v1.ReasonValuesMissing, missing)
		return
	}
	installed := live.installed()
	chosen := p.choose(of, in, installed)
	if live != nil && chosen.reason == v1.ReasonAddonUnknown { // gone from the catalogue: no change
		return
	}
	version, digest := chosen.version, chosen.digest
	if chosen.reason != "" {
		if !chosen.quiet {
			result.block(name, chosen.reason, chosen.message)
		}
		if live == nil || live.wanted == "" {
			return
		}
		version, digest = live.wanted, live.Spec.AddonRef.Digest
	}
	wanted := p.prepare(of, chosen, preparedKey{version: version, digest: digest, landing: p.landingOf(of, live)}, in)
	if wanted.problem != "" {
		result.block(name, v1.ReasonValuesInvalid, wanted.problem)
		return
	}
	made := step{item: name, kind: v1.ChangeInstall, live: live.object(), target: wanted, to: version}
	made.grant = p.offers.grant(of, &made, in.ref)
	if live != nil {
		isApplied := at.isMine && live.digest == wanted.digest
		if isApplied && made.isRight(in.ref) {
			return
		}
		made.kind, made.from, made.repair = v1.ChangeUpdate, cmp.Or(installed, live.wanted), isApplied
		result.unfit = result.unfit || chosen.unfit
	}
	if result.steps == nil {
		result.steps = make([]step, 0, len(p.set.items))
	}
	result.steps = append(result.steps, made)
}

// letGo plans the end of what the set made and does not want, or may not have, any more. What
// another set wants as it is goes over to that with its own move.
func (p planner) letGo(result *plan, live *sight, in *place) {
	item := in.itemOf(live.asked.name, p.rivals)
	if next := p.holder(item, in, result.presence); next != nil && next.name != p.set.name && goesOver(live, next.byName[item], in.ref) {
		return
	}
	result.mine = append(result.mine, &live.report)
	if live.report.IsGoing {
		return
	}
	if other := p.mayWant(item, in); other != nil {
		result.hold(item, other, "may want it")
		return
	}
	result.steps = append(result.steps, step{
		item: item, kind: v1.ChangeRemove, live: live.AddonInstallation, from: cmp.Or(live.version, live.wanted),
	})
}
