package coreaddon

import (
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/installation"
	"github.com/trellis-addons/trellis/pkg/rollout"
	"github.com/trellis-addons/trellis/pkg/target"
)

// offers are what a seed has for core add-ons, as a Core set's revision was taken from it. They
// don't change.
type offers struct {
	list listState
	// entries by add-on; nil for one that no catalogue has.
	entries     map[string]*catalogue.Entry
	kkp         string
	preReleases bool
}

// types are the types of catalogues that have an add-on.
func (o *offers) types(addon string) v1.CatalogueType {
	if entry := o.entries[addon]; entry != nil {
		return entry.Type
	}
	return ""
}

// addon is what the catalogues have of an add-on; nil: nothing.
func (o *offers) addon(name string) *v1.Addon {
	if entry := o.entries[name]; entry != nil {
		return &entry.Addon
	}
	return nil
}

// stage is what a Core set has to do with one cluster.
type stage struct {
	// move is the ordinary plan, with the exact version and content that each add-on is to have; it
	// is written with the cluster's move.
	move plan
	// hold is the plan until then: what is there is pinned, protected and put back.
	hold plan
	// changes are those of the move, blocked what can't be carried out.
	changes []rollout.Change
	blocked []rollout.Trouble
	// removals are, of the changes, those that the guard looks at: what is out of the set.
	removals []rollout.Removal
	// keeps are the items of the list that the cluster has, or is to have.
	keeps []string
	// unfit says that what is applied does not fit the cluster's Kubernetes any more, or is a
	// version that core add-ons leave: the move is for now.
	unfit bool
	// mine is what the core installations of the cluster say, as their rollout is judged.
	mine []*installation.Report
	// isNew says that nothing there can break: the cluster is younger than the revision, or it was
	// being made when the revision began.
	isNew bool
}

// age is when a cluster counts as created: after the revision began where it is new.
func (s *stage) age(at *place) time.Time {
	if s.isNew && !at.created.After(at.startedAt) {
		return at.startedAt.Add(time.Nanosecond)
	}
	return at.created
}

// place is a cluster as a stage sees it.
type place struct {
	ref target.Ref
	// k8s is its version of Kubernetes.
	k8s string
	// next are the versions of an upgrade that waits for us; none as a rule. Waits says that the control
	// plane waits.
	next          []string
	waits         bool
	set           set
	installations []v1.AddonInstallation
	created       time.Time
	// startedAt is when the revision began, grace for how long a cluster is made at most.
	startedAt time.Time
	grace     time.Duration
	// isStaged says that the set has a rollout.
	isStaged bool
}

// isNew says whether a cluster is new in the revision. One that was being made when it began counts
// too, as long as it has no core add-on from before: without a network it is never Ready, and a
// halt may last. Creation is told in seconds: what was made in the very second counts as from
// before, or a move of it would give its place away.
func (s *place) isNew() bool {
	if s.created.After(s.startedAt) {
		return true
	}
	if !s.created.Add(s.grace).After(s.startedAt) {
		return false
	}
	return !slices.ContainsFunc(s.installations, func(live v1.AddonInstallation) bool {
		return isOurs(&live) && (!live.CreationTimestamp.After(s.startedAt) || !installation.MovedAt(&live).After(s.startedAt))
	})
}

// stager makes the stage of a cluster.
type stager struct {
	*offers
	place
	stage
	// withheld are items that are not made, since what they would bring can't be staged.
	withheld map[string]bool
}

// stageFor compares the set of a cluster with what is there, as planFor does, and takes what is to
// change in the user cluster apart from what keeps it as it is.
func stageFor(from *offers, at place) stage {
	s := stager{offers: from, place: at, withheld: map[string]bool{}, stage: stage{isNew: at.isNew()}}
	wantedSet, installations := at.set, at.installations
	wantedSet.complete(at.ref, installations, from.addon)
	items := map[string]wanted{}
	aimed := wantedSet
	aimed.wanted = make([]wanted, len(wantedSet.wanted))
	for i, one := range wantedSet.wanted {
		items[one.name], aimed.wanted[i] = one, s.aim(one)
	}
	s.move = planFor(aimed, installations, from.types)
	s.move.apply = slices.DeleteFunc(s.move.apply, func(c change) bool { return c.live == nil && s.withheld[c.wanted.name] })
	s.move.apply = slices.DeleteFunc(s.move.apply, func(c change) bool { return s.cannotChange(c, items) })
	s.hold = plan{
		taken: s.move.taken, missing: s.move.missing, unknown: s.move.unknown, total: s.move.total,
		members: slices.Clone(s.move.members), blocked: slices.Clone(s.move.blocked),
	}
	changing := map[string]wanted{}
	for _, change := range s.move.apply {
		changing[change.wanted.name] = change.wanted
		if change.live == nil {
			s.changes = append(s.changes, rollout.Change{
				Item: s.itemOf(change.wanted.name), Kind: v1.ChangeInstall, To: change.wanted.spec.AddonRef.Version,
			})
			s.keeps = append(s.keeps, s.itemOf(change.wanted.name))
		}
	}
	for _, live := range s.move.members {
		s.keeps = append(s.keeps, s.itemOf(live.Name))
		item, isItem := items[live.Name]
		target, isChanging := changing[live.Name]
		switch {
		case isReleased(live):
		case isChanging:
			s.change(live, item, target)
		case !isItem || !isApplied(live, *aimed.find(live.Name)): // it stays, whatever the set says
			s.pin(live, item)
		}
	}
	for _, live := range slices.Concat(s.move.remove, s.move.release) {
		s.letGo(live)
	}
	for _, name := range s.move.taken {
		s.blocked = append(s.blocked, rollout.Trouble{
			Item: s.itemOf(name), Reason: v1.ReasonNameTaken, Message: "an installation that others made has the name of a core add-on",
		})
	}
	s.mine = judged(s.hold.members)
	return s.stage
}

// moving is the plan of a cluster that may move: all of it, but for removals that wait for
// approval, which are held. What stays as it is gets no new time.
func (s *stage) moving(mayRemove func(*v1.AddonInstallation) bool) plan {
	made := s.move
	waits := map[string]bool{}
	part := func(leaving []*v1.AddonInstallation) (now []*v1.AddonInstallation) {
		for _, live := range leaving {
			if isReleased(live) || mayRemove(live) {
				now = append(now, live)
				continue
			}
			waits[live.Name] = true
			made.keep(live)
		}
		return now
	}
	made.apply, made.members, made.blocked = slices.Clone(made.apply), slices.Clone(made.members), slices.Clone(made.blocked)
	made.remove, made.release = part(made.remove), part(made.release)
	for _, one := range s.hold.apply {
		i := slices.IndexFunc(made.apply, func(c change) bool { return c.wanted.name == one.wanted.name })
		switch {
		case i >= 0 && made.apply[i].wanted.spec.AddonRef == one.wanted.spec.AddonRef:
			made.apply[i].stays = true
		case i < 0 && (waits[one.wanted.name] || !s.isLeaving(one.live)):
			made.apply = append(made.apply, one)
		}
	}
	return made
}

// making is the plan of a new cluster while its set is paused: what is not there is made, and all
// else is held.
func (s *stage) making() plan {
	made := s.hold
	made.apply = slices.Clone(made.apply)
	for _, one := range s.move.apply {
		if one.live == nil {
			made.apply = append(made.apply, one)
		}
	}
	return made
}

// isLeaving says whether an installation is out of the set.
func (s *stage) isLeaving(live *v1.AddonInstallation) bool {
	return slices.Contains(s.move.remove, live) || slices.Contains(s.move.release, live)
}

// letGo of what is out of the set: it is protected until the move, also where its users deleted it.
func (s *stager) letGo(live *v1.AddonInstallation) {
	s.hold.keep(live)
	if isReleased(live) { // on its way: the move is made
		return
	}
	s.changes = append(s.changes, rollout.Change{Item: s.itemOf(live.Name), Kind: v1.ChangeRemove, From: appliedVersion(live)})
	applied := live.Status.LastApplied
	removal := rollout.Removal{ID: string(live.UID), HasVolumes: applied != nil && applied.VolumeClaims > 0}
	if isListed(live) { // what goes by a rule goes by a setting of the Cluster
		removal.Item = s.itemOf(live.Name)
	}
	s.removals = append(s.removals, removal)
	s.pin(live, wanted{})
}

// judged is what installations say, as a rollout counts them. One that its users deleted and that is
// protected goes nowhere: else whoever may delete one would have its cluster fail, and halt all
// others.
func judged(members []*v1.AddonInstallation) []*installation.Report {
	found := make([]*installation.Report, 0, len(members))
	for _, live := range members {
		if !live.DeletionTimestamp.IsZero() && !isReleased(live) {
			live = live.DeepCopy()
			live.DeletionTimestamp = nil
		}
		said := installation.ReportOf(live)
		found = append(found, &said)
	}
	return found
}

// aim at the exact version and content that a core add-on gets in the cluster. Where nothing is to
// be had, it is what is applied.
func (s *stager) aim(one wanted) wanted {
	live := s.live(one.name)
	if one.spec.AddonRef.Digest != "" { // the list names content itself
		return one
	}
	entry := s.entries[one.addon()]
	if entry == nil || one.origin == v1.OriginRule && entry.Type != v1.CatalogueCore {
		return pinnedAt(one, live)
	}
	installed := appliedVersion(live)
	platform := catalogue.Platform{
		KKPVersion: cluster.KKPVersionFor(s.ref, entry.KKPVersion), K8sVersion: s.k8s, Next: s.next, AllowPrereleases: s.preReleases,
	}
	selected, refusal := catalogue.Select(entry, one.spec.AddonRef.Version, installed, platform, catalogue.SelectOptions{
		AllowDowngrade: live != nil && live.Annotations[v1.AnnotationAllowDowngrade] == "true", Core: true,
	})
	if refusal != nil {
		if _, isWithdrawn := errors.AsType[*catalogue.WithdrawnError](refusal); !isWithdrawn {
			s.blocked = append(s.blocked, rollout.Trouble{Item: s.itemOf(one.name), Reason: refusal.Reason(), Message: refusal.Error()})
		}
		return pinnedAt(one, live)
	}
	if s.isStaged && catalogue.SourceMoves(selected.Version) {
		return s.cannotStage(one, live, selected)
	}
	one.spec.AddonRef.Version, one.spec.AddonRef.Digest = selected.Version.Version, selected.Origin.Content
	if installed != "" && catalogue.Key(installed) != catalogue.Key(one.spec.AddonRef.Version) {
		s.unfit = s.unfit || s.leaves(entry, installed, one.spec.AddonRef.Version, platform)
	}
	return one
}

// leaves says whether a version is to be left now for another: core add-ons leave it, or it does not
// fit the cluster, or what the cluster waits to get.
func (s *stager) leaves(entry *catalogue.Entry, from, to string, platform catalogue.Platform) bool {
	if entry.Left(from) {
		return true
	}
	before, _ := entry.Version(from)
	return before != nil && (!entry.FitsKubernetes(from, platform) || s.waits && entry.Bridges(from, to, platform))
}

// cannotChange blocks a change of what an installation can't change. It stays as it is, and pinned,
// as if no item named it.
func (s *stager) cannotChange(c change, items map[string]wanted) bool {
	if c.live == nil || canBe(c.live, c.wanted) {
		return false
	}
	reason, message := c.unchangeable(s.entries[c.wanted.addon()] != nil)
	s.blocked = append(s.blocked, rollout.Trouble{Item: s.itemOf(c.wanted.name), Reason: reason, Message: message})
	delete(items, c.wanted.name)
	return true
}

// canBe says whether an installation can become what is wanted: nothing differs that can't be changed.
func canBe(live *v1.AddonInstallation, one wanted) bool {
	return live.Spec.AddonRef.Name == one.spec.AddonRef.Name && live.Spec.TargetNamespace == one.spec.TargetNamespace &&
		live.Spec.ReleaseName == one.spec.ReleaseName
}

// cannotStage is a version whose source moves by itself: what is there stays. A new cluster gets it
// all the same, since it is not Ready without.
func (s *stager) cannotStage(one wanted, live *v1.AddonInstallation, selected catalogue.Selection) wanted {
	s.blocked = append(s.blocked, rollout.Trouble{Item: s.itemOf(one.name), Reason: v1.ReasonSourceMoves, Message: fmt.Sprintf(
		"the source of version %q of add-on %q has no fixed content, which can't be staged: name a commit, a tag or a digest",
		selected.Version.Version, one.addon())})
	switch {
	case live == nil && s.stage.isNew:
		one.spec.AddonRef.Version, one.spec.AddonRef.Digest = selected.Version.Version, selected.Origin.Content
	case live == nil:
		s.withheld[one.name] = true
	case live.Status.LastApplied == nil && live.Spec.AddonRef.Digest != "": // on its way into a new cluster
		one.spec.AddonRef = live.Spec.AddonRef
	default:
		return pinnedAt(one, live)
	}
	return one
}

func (s *stager) live(name string) *v1.AddonInstallation {
	for i := range s.installations {
		if one := &s.installations[i]; one.Name == name && isOurs(one) {
			return one
		}
	}
	return nil
}

// change takes a write apart: what changes nothing in the user cluster is for now, all else for the
// move; until then the installation is pinned. What was written already, and others changed since
// or on its way, is put back: a move each time would begin its time anew.
func (s *stager) change(live *v1.AddonInstallation, item, target wanted) {
	applied := live.Status.LastApplied
	isThere := applied == nil || applied.Version == target.spec.AddonRef.Version && applied.EntryDigest == target.spec.AddonRef.Digest
	if wroteWith(live, target, target.spec.AddonRef) || isThere && comesFrom(live, item) {
		s.hold.apply = append(s.hold.apply, change{wanted: target, live: live, stays: true})
		return
	}
	s.changes = append(s.changes, rollout.Change{
		Item: s.itemOf(live.Name), Kind: v1.ChangeUpdate, From: appliedVersion(live), To: target.spec.AddonRef.Version,
	})
	s.pin(live, item)
}

// pin an installation at what is applied. What is known to be written by the present item is put
// back besides; of what an earlier one wrote, all fields stay as they are.
func (s *stager) pin(live *v1.AddonInstallation, item wanted) {
	if live.Status.LastApplied == nil {
		return // nothing is there yet
	}
	isKnown := item.name != "" && comesFrom(live, item)
	if live.Spec.AddonRef.Digest != "" && (!isKnown || wroteWith(live, item, live.Spec.AddonRef)) {
		pinned := item // what was asked for last stays so, also while it is on its way
		pinned.spec.AddonRef = live.Spec.AddonRef
		if isKnown && !isApplied(live, pinned) {
			s.hold.apply = append(s.hold.apply, change{wanted: pinned, live: live, stays: true})
		}
		return
	}
	pinned := pinnedAt(wanted{name: live.Name, origin: live.Annotations[v1.AnnotationCoreOrigin], spec: live.Spec}, live)
	if isKnown {
		pinned = pinnedAt(item, live)
	} else if isHeld(live, pinned) {
		return
	}
	if !isApplied(live, pinned) {
		s.hold.apply = append(s.hold.apply, change{wanted: pinned, live: live, stays: true})
	}
}

// isHeld says whether an installation has its pin and its protection.
func isHeld(live *v1.AddonInstallation, pinned wanted) bool {
	return live.Spec.AddonRef == pinned.spec.AddonRef && live.Labels[v1.LabelManagedBy] == v1.ManagedByCoreAddons &&
		slices.Contains(live.Finalizers, v1.FinalizerCoreProtection)
}

// pinnedAt is a core add-on at the version and content that an installation has applied.
func pinnedAt(one wanted, live *v1.AddonInstallation) wanted {
	if live == nil || live.Status.LastApplied == nil || live.Status.LastApplied.Version == "" {
		return one
	}
	applied := live.Status.LastApplied
	one.spec.AddonRef.Version, one.spec.AddonRef.Digest = applied.Version, applied.EntryDigest
	return one
}

// comesFrom says whether an installation was written from an item as it is, whatever the pin.
func comesFrom(live *v1.AddonInstallation, item wanted) bool {
	return wroteWith(live, item, item.spec.AddonRef) || wroteWith(live, item, live.Spec.AddonRef) ||
		wroteWith(live, item, pinnedAt(item, live).spec.AddonRef)
}

// wroteWith says whether what was written last is an item with this reference.
func wroteWith(live *v1.AddonInstallation, item wanted, ref v1.AddonReference) bool {
	item.spec.AddonRef = ref
	digest, err := intent(live.Namespace, item).Digest()
	return err == nil && live.Annotations[v1.AnnotationDigest] == digest
}

func appliedVersion(live *v1.AddonInstallation) string {
	if live == nil {
		return ""
	}
	if applied := live.Status.LastApplied; applied != nil && applied.Version != "" {
		return applied.Version
	}
	return live.Status.Version
}

// stampsOf are the annotations of a write under a Core set. What only pins or puts back keeps those
// of the move before.
func (c change) stampsOf(set *inForce) map[string]string {
	if c.stays {
		return installation.KeptStamps(c.live)
	}
	return installation.Move{At: set.at, StartedAt: set.startedAt, Pace: set.pace}.Stamps(c.live)
}
