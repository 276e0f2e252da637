package coreaddon

import (
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
)

// offers are a seed's list and catalogues for core add-ons, as a Core set's revision was taken from them. They don't
// change.
type offers struct {
	list listState
	// entries by add-on; nil if no catalogue has the add-on.
	entries     map[string]*catalogue.Entry
	kkp         string
	preReleases bool
}

// types is the type of the catalogue that has an add-on; empty if none has.
func (o *offers) types(addon string) v1.CatalogueType {
	if entry := o.entries[addon]; entry != nil {
		return entry.Type
	}
	return ""
}

// addon is an add-on as the catalogues have it; nil if none has.
func (o *offers) addon(name string) *v1.Addon {
	if entry := o.entries[name]; entry != nil {
		return &entry.Addon
	}
	return nil
}

// stage has the changes that a Core set makes in one cluster.
type stage struct {
	// move is the ordinary plan, with the exact version and content of each add-on; it is written when the cluster
	// moves.
	move plan
	// hold is the plan until then: existing installations are pinned, protected and restored.
	hold plan
	// changes are those of the move, blocked those that are impossible.
	changes []rollout.Change
	blocked []rollout.Trouble
	// removals are those of the changes that the guard checks: of installations out of the set.
	removals []rollout.Removal
	// keeps are the items of the list that the cluster has, or should have.
	keeps []string
	// unfit says that an applied version no longer fits the cluster's Kubernetes, or is one that core add-ons must
	// leave: the cluster moves at once.
	unfit bool
	// mine are the reports of the cluster's core installations, which the rollout evaluates.
	mine []*installation.Report
	// isNew says that nothing there can break: the cluster is younger than the revision, or was being created when the
	// revision began.
	isNew bool
}

// age is the creation time of a cluster for the count: after the start of the revision if it is new.
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
	// next are the versions of an upgrade that waits for add-ons; usually none. waits says that the control plane waits.
	next          []string
	waits         bool
	set           set
	installations []v1.AddonInstallation
	created       time.Time
	// startedAt is when the revision began, grace the longest time that the creation of a cluster takes.
	startedAt time.Time
	grace     time.Duration
	// isStaged says that the set has a rollout.
	isStaged bool
}

// isNew reports whether a cluster is new in the revision. One that was being created when the revision began counts
// too, as long as it has no core add-on from before: without a network it is never Ready, and a halt may last.
// Creation times have seconds: an installation of that very second counts as older, since its move would otherwise
// free its place.
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

// stager computes the stage of a cluster.
type stager struct {
	*offers
	place
	stage
	// notStaged are items that are not created, since their content can't be staged.
	notStaged map[string]bool
}

// stageFor compares the set of a cluster with the existing installations, as planFor does, and separates the changes
// to the user cluster from the writes that preserve its state.
func stageFor(from *offers, at place) stage {
	s := stager{offers: from, place: at, notStaged: map[string]bool{}, stage: stage{isNew: at.isNew()}}
	wantedSet, installations := at.set, at.installations
	wantedSet.complete(at.ref, installations, from.addon)
	items := map[string]wanted{}
	aimed := wantedSet
	aimed.wanted = make([]wanted, len(wantedSet.wanted))
	for i, one := range wantedSet.wanted {
		items[one.name], aimed.wanted[i] = one, s.aim(one)
	}
	s.move = planFor(aimed, installations, from.types)
	s.move.apply = slices.DeleteFunc(s.move.apply, func(c change) bool { return c.live == nil && s.notStaged[c.wanted.name] })
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
		case !isItem || !isApplied(live, *aimed.find(live.Name)): // it stays, regardless of the set
			s.pin(live, item)
		}
	}
	for _, live := range slices.Concat(s.move.remove, s.move.release) {
		s.release(live)
	}
	for _, name := range s.move.taken {
		s.blocked = append(s.blocked, rollout.Trouble{
			Item: s.itemOf(name), Reason: v1.ReasonNameTaken, Message: "an installation that another client created has the name of a core add-on",
		})
	}
	s.mine = evaluated(s.hold.members)
	return s.stage
}

// moving is the plan of a cluster that may move: the whole move, without removals that wait for approval. An
// installation that stays as it is keeps its time stamps.
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

// making is the plan of a new cluster while its set is paused: missing installations are created, all others are not
// changed.
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

// isLeaving reports whether an installation is out of the set.
func (s *stage) isLeaving(live *v1.AddonInstallation) bool {
	return slices.Contains(s.move.remove, live) || slices.Contains(s.move.release, live)
}

// release handles an installation out of the set: it is protected until the move, even if its users deleted it.
func (s *stager) release(live *v1.AddonInstallation) {
	s.hold.keep(live)
	if isReleased(live) { // its deletion began: the move was made
		return
	}
	s.changes = append(s.changes, rollout.Change{Item: s.itemOf(live.Name), Kind: v1.ChangeRemove, From: appliedVersion(live)})
	applied := live.Status.LastApplied
	removal := rollout.Removal{ID: string(live.UID), HasVolumes: applied != nil && applied.VolumeClaims > 0}
	if isListed(live) { // a removal by a rule is caused by a setting of the Cluster
		removal.Item = s.itemOf(live.Name)
	}
	s.removals = append(s.removals, removal)
	s.pin(live, wanted{})
}

// evaluated are the reports of installations, as a rollout counts them. A protected one that its users deleted counts as
// not deleted: otherwise a user who may delete one could fail the cluster and halt all others.
func evaluated(members []*v1.AddonInstallation) []*installation.Report {
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

// aim sets the exact version and content that a core add-on gets in the cluster. If none can be selected, it is the
// applied one.
func (s *stager) aim(one wanted) wanted {
	live := s.live(one.name)
	if one.spec.AddonRef.Digest != "" { // the list names the content itself
		return one
	}
	entry := s.entries[one.addon()]
	if entry == nil || one.origin == v1.OriginRule && entry.Type != v1.CatalogueCore {
		return pinnedAt(one, live)
	}
	installed := appliedVersion(live)
	platform := catalogue.Platform{
		KKPVersion: resolution.KKPVersionFor(s.ref, entry.KKPVersion), K8sVersion: s.k8s, Next: s.next, AllowPrereleases: s.preReleases,
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

// leaves reports whether a version must be replaced now: core add-ons must leave it, or it does not fit the cluster
// or the version that the cluster waits for.
func (s *stager) leaves(entry *catalogue.Entry, from, to string, platform catalogue.Platform) bool {
	if entry.Left(from) {
		return true
	}
	before, _ := entry.Version(from)
	return before != nil && (!entry.FitsKubernetes(from, platform) || s.waits && entry.Bridges(from, to, platform))
}

// cannotChange blocks a change of an immutable field. The installation stays unchanged, and pinned, as if no item
// named it.
func (s *stager) cannotChange(c change, items map[string]wanted) bool {
	if c.live == nil || canBe(c.live, c.wanted) {
		return false
	}
	reason, message := c.unchangeable(s.entries[c.wanted.addon()] != nil)
	s.blocked = append(s.blocked, rollout.Trouble{Item: s.itemOf(c.wanted.name), Reason: reason, Message: message})
	delete(items, c.wanted.name)
	return true
}

// canBe reports whether an installation can become the desired one: no immutable field differs.
func canBe(live *v1.AddonInstallation, one wanted) bool {
	return live.Spec.AddonRef.Name == one.spec.AddonRef.Name && live.Spec.TargetNamespace == one.spec.TargetNamespace &&
		live.Spec.ReleaseName == one.spec.ReleaseName
}

// cannotStage handles a version whose source has no fixed content: the existing installation stays. A new cluster
// gets the version anyway, since it is not Ready without.
func (s *stager) cannotStage(one wanted, live *v1.AddonInstallation, selected catalogue.Selection) wanted {
	s.blocked = append(s.blocked, rollout.Trouble{Item: s.itemOf(one.name), Reason: v1.ReasonSourceMoves, Message: fmt.Sprintf(
		"the source of version %q of add-on %q can change its content, so it can't be rolled out in groups: name a commit, a tag or a digest",
		selected.Version.Version, one.addon())})
	switch {
	case live == nil && s.stage.isNew:
		one.spec.AddonRef.Version, one.spec.AddonRef.Digest = selected.Version.Version, selected.Origin.Content
	case live == nil:
		s.notStaged[one.name] = true
	case live.Status.LastApplied == nil && live.Spec.AddonRef.Digest != "": // being installed in a new cluster
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

// change sorts a write: one that does not affect the user cluster is made now, any other one with the move; until
// then the installation is pinned. A write that was made already and that other clients changed since, or while it
// was on its way, is restored: another move would restart its time.
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

// pin pins an installation at its applied version. An installation that the present item is known to have written is
// also restored; all fields from an earlier item stay as they are.
func (s *stager) pin(live *v1.AddonInstallation, item wanted) {
	if live.Status.LastApplied == nil {
		return // nothing is applied yet
	}
	isKnown := item.name != "" && comesFrom(live, item)
	if live.Spec.AddonRef.Digest != "" && (!isKnown || wroteWith(live, item, live.Spec.AddonRef)) {
		pinned := item // the last requested version stays, also while it is being applied
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

// isHeld reports whether an installation has its pin and its protection.
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

// comesFrom reports whether an installation was written from the present item, with any pin.
func comesFrom(live *v1.AddonInstallation, item wanted) bool {
	return wroteWith(live, item, item.spec.AddonRef) || wroteWith(live, item, live.Spec.AddonRef) ||
		wroteWith(live, item, pinnedAt(item, live).spec.AddonRef)
}

// wroteWith reports whether the last write was of an item with this reference.
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

// stampsOf are the annotations of a write under a Core set. A write that only pins or restores keeps those of the
// previous move.
func (c change) stampsOf(set *inForce) map[string]string {
	if c.stays {
		return installation.KeptStamps(c.live)
	}
	return installation.Move{At: set.at, StartedAt: set.startedAt, Pace: set.pace}.Stamps(c.live)
}
