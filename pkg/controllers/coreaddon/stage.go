package coreaddon

import (
	"errors"
	"slices"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/installation"
	"github.com/trellis-addons/trellis/pkg/rollout"
)

// offers are what a seed has for core add-ons, as a Core set's revision was taken from it. They don't
// change.
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
	// unfit says that what is applied does not fit the cluster's Kubernetes any more, or is a version
	// that core add-ons leave: the move is for now.
	unfit bool
	// mine are the core installations of the cluster.
	mine []*v1.AddonInstallation
}

// stager makes the stage of a cluster.
type stager struct {
	*offers
	k8s           string
	installations []v1.AddonInstallation
	stage
}

// stageFor compares the set of a cluster with what is there, as planFor does, and takes what is to
// change in the user cluster apart from what keeps it as it is.
func stageFor(from *offers, k8s string, wantedSet set, installations []v1.AddonInstallation) stage {
	s := stager{offers: from, k8s: k8s, installations: installations}
	items := map[string]wanted{}
	aimed := wantedSet
	aimed.wanted = make([]wanted, len(wantedSet.wanted))
	for i, one := range wantedSet.wanted {
		items[one.name], aimed.wanted[i] = one, s.aim(one)
	}
	s.move = planFor(aimed, installations, from.types)
	s.hold = plan{taken: s.move.taken, missing: s.move.missing, total: s.move.total, members: s.move.members, blocked: s.move.blocked}
	changing := map[string]wanted{}
	for _, change := range s.move.apply {
		changing[change.wanted.name] = change.wanted
		if change.live == nil {
			s.changes = append(s.changes, rollout.Change{
				Item: change.wanted.name, Kind: v1.ChangeInstall, To: change.wanted.spec.AddonRef.Version,
			})
		}
	}
	for _, live := range s.move.members {
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
	for _, live := range slices.Concat(s.move.remove, s.move.release) { // protected until the move
		s.changes = append(s.changes, rollout.Change{Item: live.Name, Kind: v1.ChangeRemove, From: appliedVersion(live)})
		s.hold.keep(live)
		if !isReleased(live) {
			s.pin(live, wanted{})
		}
	}
	for _, name := range s.move.taken {
		s.blocked = append(s.blocked, rollout.Trouble{
			Item: name, Reason: v1.ReasonNameTaken, Message: "an installation that others made has the name of a core add-on",
		})
	}
	s.mine = s.hold.members
	return s.stage
}

// aim at the exact version and content that a core add-on gets in the cluster. Where nothing is to be
// had, it is what is applied.
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
	platform := catalogue.Platform{KKPVersion: entry.KKPVersion, K8sVersion: s.k8s, AllowPrereleases: s.preReleases}
	selected, refusal := catalogue.Select(entry, one.spec.AddonRef.Version, installed, platform, catalogue.SelectOptions{
		AllowDowngrade: live != nil && live.Annotations[v1.AnnotationAllowDowngrade] == "true", Core: true,
	})
	if refusal != nil {
		if _, isWithdrawn := errors.AsType[*catalogue.WithdrawnError](refusal); !isWithdrawn {
			s.blocked = append(s.blocked, rollout.Trouble{Item: one.name, Reason: refusal.Reason(), Message: refusal.Error()})
		}
		return pinnedAt(one, live)
	}
	one.spec.AddonRef.Version, one.spec.AddonRef.Digest = selected.Version.Version, selected.Origin.Content
	if installed != "" && catalogue.Key(installed) != catalogue.Key(one.spec.AddonRef.Version) {
		before, _ := entry.Version(installed)
		s.unfit = s.unfit || entry.Left(installed) || before != nil && !entry.FitsKubernetes(installed, platform)
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
// move; until then the installation is pinned.
func (s *stager) change(live *v1.AddonInstallation, item, target wanted) {
	applied := live.Status.LastApplied
	isThere := applied == nil || applied.Version == target.spec.AddonRef.Version && applied.EntryDigest == target.spec.AddonRef.Digest
	if isThere && comesFrom(live, item) {
		s.hold.apply = append(s.hold.apply, change{wanted: target, live: live, stays: true})
		return
	}
	s.changes = append(s.changes, rollout.Change{
		Item: live.Name, Kind: v1.ChangeUpdate, From: appliedVersion(live), To: target.spec.AddonRef.Version,
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
	pinned := pinnedAt(wanted{live.Name, live.Annotations[v1.AnnotationCoreOrigin], live.Spec}, live)
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

// stampsOf are the annotations of a write under a Core set: of a move when it was, and whether the
// installation was not Ready before. What only pins or puts back keeps those of the move before.
func (c change) stampsOf(pace installation.Pace, at time.Time) map[string]string {
	stamps := map[string]string{}
	if c.stays {
		for _, name := range []string{v1.AnnotationMoved, v1.AnnotationSick} {
			if value, ok := c.live.Annotations[name]; ok {
				stamps[name] = value
			}
		}
		return stamps
	}
	stamps[v1.AnnotationMoved] = at.UTC().Format(time.RFC3339Nano)
	if c.live == nil {
		return stamps
	}
	state := installation.StateOf(c.live, pace, at)
	isSick := !state.Ready
	if state.Phase == installation.Underway && !state.Moved.IsZero() {
		isSick = installation.WasSick(c.live)
	}
	if isSick {
		stamps[v1.AnnotationSick] = "true"
	}
	return stamps
}
