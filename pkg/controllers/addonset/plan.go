package addonset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
)

// competitors are all sets of a seed, by the names of their items, each list in the order of their claims.
type competitors struct {
	sets   map[string]*set
	byItem map[string][]*set
	// unknown are the possible claims of copies that can't be used now.
	unknown []*claims
}

func newCompetitors(sets map[string]*set) *competitors {
	made := &competitors{sets: sets, byItem: map[string][]*set{}}
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

// step is a change of one installation.
type step struct {
	item string
	kind v1.ChangeKind
	// live is nil for an installation that does not exist yet.
	live *v1.AddonInstallation
	// target is the intent to apply, shared among clusters; nil for a removal. grant is the right to values of the
	// platform; empty if there are none.
	target *prepared
	grant  string
	// repair says that the step only restores fields that other clients changed, which is no move.
	repair   bool
	from, to string
}

// liveName is the name of the installation; empty if there is none.
func (s *step) liveName() string {
	if s.live == nil {
		return ""
	}
	return s.live.Name
}

// intent is the object to apply in a cluster.
func (s *step) intent(in target.Ref) installation.Intent {
	made := s.target.intentIn(in, s.live)
	if s.grant != "" {
		made.Annotations = maps.Clone(made.Annotations)
		made.Annotations[v1.AnnotationPlatformValues] = s.grant
	}
	return made
}

// isRight reports whether the installation is as desired.
func (s *step) isRight(in target.Ref) bool {
	if s.grant == "" && in.IsKKP() {
		return installation.IsRight(s.live, &s.target.intent, s.target.digest)
	}
	wanted := s.intent(in)
	return installation.IsRight(s.live, &wanted, s.target.digest)
}

// plan has the changes that one set needs in one cluster.
type plan struct {
	presence waves.Presence
	steps    []step
	blocked  []rollout.Trouble
	// mine are the reports of the set's installations in the cluster, without those that it passes to another set.
	mine []*installation.Report
	// unfit says that an applied version no longer fits the cluster's Kubernetes.
	unfit bool
	// isEarly says that the set has items before the cluster reaches the Kubernetes version that the set is for.
	isEarly bool
	// isHeld says that a change waits for a copy that can't be used.
	isHeld bool
	// awaited are items whose name belongs to another set which has not created them yet, with that set's name.
	awaited map[string]string
	// deviations say how the cluster deviates from the set, and optedOut are the items that it leaves out.
	deviations []string
	optedOut   []string
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
	competitors *competitors
}

// planFor plans the changes that a set needs in a cluster. It reads only its arguments, and its result does not
// depend on the order of sets, clusters and installations.
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
		p.release(&result, live, in)
	}
	return result
}

// blockDependents blocks installations that would be created and depend on a missing item, which is blocked or which
// another set must create in its own time: they would wait for it, and count as failures of the rollout.
func (p *plan) blockDependents(of *set, in target.Ref) {
	if len(p.blocked) == 0 && len(p.awaited) == 0 && len(p.optedOut) == 0 {
		return
	}
	missing := map[string]bool{}
	for _, one := range p.blocked {
		missing[one.Item] = !slices.ContainsFunc(p.mine, func(said *installation.Report) bool { return said.Live.Name == in.NameOf(one.Item) })
	}
	for name := range p.awaited {
		missing[name] = true
	}
	for _, name := range p.optedOut {
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
		return fmt.Sprintf("waits: AddonSet %q has precedence for its name, and has not created its installation in this cluster yet", holder)
	}
	if slices.Contains(p.optedOut, item) {
		return "is left out in this cluster"
	}
	return "is blocked in this cluster"
}

// presenceOf reports whether a set is for a cluster.
func presenceOf(of *set, in *place, from *offers) waves.Presence {
	if of.deleting || !of.selector.Matches(in.labels) {
		return waves.Absent
	}
	for _, one := range []struct {
		constraint *catalogue.Range
		version    string
	}{{of.k8s, in.version}, {of.kkp, resolution.KKPVersionFor(in.ref, from.kkp)}} {
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

// owned are the set's installations in a cluster, by name, without those of the items in but.
func (p planner) owned(in *place, but map[string]*item) []*observation {
	var found []*observation
	for name, live := range in.live {
		if live.isOf(p.set.name) && (len(but) == 0 || but[in.itemOf(name, p.competitors)] == nil) {
			found = append(found, live)
		}
	}
	slices.SortFunc(found, func(a, b *observation) int { return strings.Compare(a.asked.name, b.asked.name) })
	return found
}

// holder is the set that has a name in a cluster; nil if no set claims it. Argument own is the presence of the
// planner's set, if known. A set for the cluster's next Kubernetes comes first.
func (p planner) holder(name string, in *place, own waves.Presence) *set {
	first, _ := addonset.Holder(p.competitors.byItem[name], func(one *set) bool {
		return p.isEarly(one, name, in)
	}, func(one *set) bool {
		return p.isPresent(one, in, own)
	})
	return first
}

// isPresent reports whether a set is for a cluster, or may be. Argument own is as for holder.
func (p planner) isPresent(one *set, in *place, own waves.Presence) bool {
	if one != p.set || own == waves.Unknown {
		own = presenceOf(one, in, p.offers)
	}
	return own != waves.Absent
}

// want plans one item of the set in a cluster that the set is for.
func (p planner) want(result *plan, of *item, in *place) {
	name := string(of.Name)
	live := in.live[in.ref.NameOf(name)]
	if holder := p.holder(name, in, result.presence); holder != nil && holder.name != p.set.name {
		p.leaveTo(holder, result, name, in)
		return
	}
	if by := p.set.deviationOf(of, in); !by.IsNone() {
		result.deviate(by)
		if by.OptOut {
			p.leaveItem(result, live, in)
			return
		}
	}
	if first := p.comesFirst(name, in); first != nil && (live == nil || !live.isOf(p.set.name)) {
		result.hold(name, first, "has precedence over this one")
		return
	}
	if live == nil {
		if reason, message := p.conflictOf(of, in); reason != "" {
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
	if isMine && live.report.IsGoing { // it is recreated after its deletion
		return
	}
	if reason, message := p.refusal(of, live, in.ref); reason != "" {
		result.block(name, reason, message)
		return
	}
	p.aim(result, of, aimed{live, isMine}, in)
}

// leaveTo plans an item whose name belongs to another set, the holder: the item waits for that set, and an existing
// installation of this set is released.
func (p planner) leaveTo(holder *set, result *plan, name string, in *place) {
	switch live := in.live[in.ref.NameOf(name)]; {
	case live == nil:
		result.await(name, holder.name)
	case live.isOf(p.set.name):
		p.release(result, live, in)
	}
}

// refusal is the reason why an item can't have the installation of its name, and the set that created it; empty if it
// can.
func (p planner) refusal(of *item, live *observation, in target.Ref) (reason, message string) {
	owner := live.set
	switch {
	case owner == "" || p.competitors.sets[owner] == nil:
		return v1.ReasonNameTaken, fmt.Sprintf("installation %q was not created by this set and is not changed: rename the item, or %s",
			live.Name, howToAdopt)
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
		"AddonSet %q has installation %q with another add-on, releaseName or targetNamespace: the item waits until that installation is removed",
		owner, live.Name)
}

// howToAdopt says how a set can adopt the objects of an installation that no set created.
const howToAdopt = "have the set adopt its objects: write allow: [Adopt] into the item, set deletionPolicy Orphan on the installation " +
	"and delete it"

// goesOver reports whether an installation can be passed from one set to another's item by a change of its label
// alone.
func goesOver(live *observation, to *item, in target.Ref) bool {
	// Outside of KKP an item that names no release accepts the existing one.
	isRelease := live.release == to.ReleaseName || to.ReleaseName == "" && !in.IsKKP()
	isPlace := to.TargetNamespace == "" || live.asked.targetNamespace == to.TargetNamespace
	return live.asked.addon == to.addon() && isPlace && isRelease
}

// conflictOf is the reason why an item's installation can't be created: another installation has the name, or has
// the add-on in the same namespace of the cluster, or an annotation of the Cluster requests it; empty if there is
// none.
func (p planner) conflictOf(of *item, in *place) (reason, message string) {
	if name := in.ref.NameOf(string(of.Name)); in.elsewhere != nil && in.elsewhere(name) {
		return v1.ReasonNameTaken, fmt.Sprintf("installation %q belongs to another cluster", name)
	}
	namespace := p.landingOf(of, nil).Namespace
	for _, name := range slices.Sorted(maps.Keys(in.live)) {
		live := in.live[name]
		if live.isOf(p.set.name) && p.set.byName[in.itemOf(name, p.competitors)] != nil { // the set lists the add-on twice
			continue
		}
		if live.asked.addon == of.addon() && live.asked.targetNamespace == namespace {
			way := ": give the item another targetNamespace, or " + howToAdopt
			if p.competitors.sets[live.set] != nil {
				way = fmt.Sprintf(", by AddonSet %q: give one of the two items another targetNamespace, or remove it from its set", live.set)
			}
			return v1.ReasonNameTaken, fmt.Sprintf("installation %q has add-on %q in namespace %q already%s", name, of.addon(), namespace, way)
		}
	}
	for _, one := range in.asked {
		if one.name == string(of.Name) || one.addon == of.addon() && one.targetNamespace == namespace {
			return v1.ReasonNameTaken, fmt.Sprintf("the Cluster's annotation %s requests add-on %q, or an installation with this name",
				v1.AnnotationInitialInstallations, one.addon)
		}
	}
	return "", ""
}

// aimed is the installation with an item's name, if there is one, and whether the set created it.
type aimed struct {
	live   *observation
	isMine bool
}

// aim plans the target of an item, compared with the existing installation.
func (p planner) aim(result *plan, of *item, at aimed, in *place) {
	name, live := string(of.Name), at.live
	if missing := p.offers.missing(of); missing != "" {
		result.block(name, v1.ReasonValuesMissing, missing)
		return
	}
	installed := live.installed()
	chosen := p.choose(of, in, installed)
	if live != nil && chosen.reason == v1.ReasonAddonUnknown { // no catalogue has it any longer: no change
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

// release plans the removal of an installation that is no longer in the set, or that the set may no longer have. One
// that another set claims unchanged is passed to that set by the other set's own move.
func (p planner) release(result *plan, live *observation, in *place) {
	item := in.itemOf(live.asked.name, p.competitors)
	if next := p.holder(item, in, result.presence); next != nil && next.name != p.set.name && goesOver(live, next.byName[item], in.ref) {
		return
	}
	result.mine = append(result.mine, &live.report)
	if live.report.IsGoing {
		return
	}
	if other := p.mayWant(item, in); other != nil {
		result.hold(item, other, "may request it")
		return
	}
	result.steps = append(result.steps, step{
		item: item, kind: v1.ChangeRemove, live: live.AddonInstallation, from: cmp.Or(live.version, live.wanted),
	})
}
