package installation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Held says why an installation waits for others of its cluster.
type Held string

const (
	// HeldByNothing lets it go on.
	HeldByNothing Held = ""
	// HeldByCycle: it depends on itself, by others.
	HeldByCycle Held = "Cycle"
	// HeldByMissing: it depends on what is not there.
	HeldByMissing Held = "Missing"
	// HeldByDependencies: what it depends on is not Ready.
	HeldByDependencies Held = "Dependencies"
	// HeldBySlot: what has an earlier slot is not as far as it has to be.
	HeldBySlot Held = "Slot"
	// HeldByRemovals: what depends on it, or has a later slot, is being removed too.
	HeldByRemovals Held = "Removals"
)

// Order is whom an installation waits for.
type Order struct {
	Held Held
	// By names the others. Of a cycle: in the order in which each depends on the next one, from the
	// installation itself, which the last one depends on. Of slots and removals: the youngest first,
	// since that is most often ready last.
	By []string
}

// Neighbourhood is an installation with the others of its cluster. It decides the order among them;
// each decision is linear in the cluster's installations and their dependencies.
type Neighbourhood struct {
	own    *v1.AddonInstallation
	byName map[string]*v1.AddonInstallation
	slots  map[v1.AddonName]v1.Slot
}

// NeighbourhoodOf takes an installation and all of its cluster, with or without itself; what is
// given as the installation counts. Slots are those of add-ons; what has none comes last. Nothing
// is changed.
func NeighbourhoodOf(own *v1.AddonInstallation, all []v1.AddonInstallation, slots map[v1.AddonName]v1.Slot) Neighbourhood {
	byName := make(map[string]*v1.AddonInstallation, len(all)+1)
	for i := range all {
		byName[all[i].Name] = &all[i]
	}
	byName[own.Name] = own
	return Neighbourhood{own: own, byName: byName, slots: slots}
}

// BeforeFirstApply says whom the installation waits for until it is applied for the first time.
func (n Neighbourhood) BeforeFirstApply() Order {
	if cycle := n.Cycle(); len(cycle) > 0 {
		return Order{HeldByCycle, cycle}
	}
	var missing, unready []string
	for _, name := range dependencies(n.own) {
		switch other := n.byName[name]; {
		case other == nil:
			missing = append(missing, name)
		case !IsSettled(other):
			unready = append(unready, name)
		}
	}
	switch {
	case len(missing) > 0:
		return Order{HeldByMissing, missing}
	case len(unready) > 0:
		return Order{HeldByDependencies, unready}
	}
	return held(HeldBySlot, n.bySlot())
}

// BeforeVersion says whom the installation waits for until another version of it is applied. Moves
// says that an installation is about to get another version. What is missing, or depends on the
// installation itself, is not waited for.
func (n Neighbourhood) BeforeVersion(moves func(*v1.AddonInstallation) bool) Order {
	var unready []string
	dependents := n.dependents()
	for _, name := range dependencies(n.own) {
		other := n.byName[name]
		if other != nil && !dependents[name] && (!IsSettled(other) || moves(other)) {
			unready = append(unready, name)
		}
	}
	if len(unready) == 0 {
		return Order{}
	}
	return Order{HeldByDependencies, unready}
}

// BeforeRemoval says whom the removal of the installation waits for: others that are removed too,
// and depend on it or have a later slot. What the installation itself depends on goes after it. Of a
// cluster that goes only those are removed that go along.
func (n Neighbourhood) BeforeRemoval(clusterGoes bool) Order {
	goes := IsRemoved
	if clusterGoes {
		goes = GoesAlong
	}
	var removed []*v1.AddonInstallation
	own, needed := n.rank(n.own), n.needed()
	for name, other := range n.byName {
		if name == n.own.Name || !goes(other) || needed[name] {
			continue
		}
		if n.rank(other) > own || slices.Contains(other.Spec.DependsOn, v1.InstallationName(n.own.Name)) {
			removed = append(removed, other)
		}
	}
	return held(HeldByRemovals, removed)
}

// bySlot are those with an earlier slot that are not as far as they have to be: Applied for what
// has a slot itself, Ready for the rest. What is paused, removed or had from KKP itself does not
// count, nor what depends on the installation: both would wait for each other.
func (n Neighbourhood) bySlot() (earlier []*v1.AddonInstallation) {
	own := n.rank(n.own)
	if own == 0 || len(n.slots) == 0 {
		return nil
	}
	far := IsSettled
	if own < rankOfRest {
		far = isApplied
	}
	dependents := n.dependents()
	for name, other := range n.byName {
		if n.rank(other) < own && !isIdle(other) && !IsRemoved(other) && !dependents[name] && !far(other) {
			earlier = append(earlier, other)
		}
	}
	return earlier
}

// isIdle says whether nothing is done for an installation: it is paused, or KKP itself has the
// add-on.
func isIdle(one *v1.AddonInstallation) bool {
	ready := meta.FindStatusCondition(one.Status.Conditions, v1.ConditionReady)
	return one.Spec.Paused || ready != nil && ready.Reason == v1.ReasonKKPAddonExists
}

// Cycle is a shortest way on which the installation depends on itself, from it on; nil for none.
func (n Neighbourhood) Cycle() []string {
	own := n.own.Name
	before := map[string]string{}
	for queue := []string{own}; len(queue) > 0; queue = queue[1:] {
		for _, next := range n.dependenciesOf(queue[0]) {
			if next == own {
				return way(before, own, queue[0])
			}
			if _, seen := before[next]; !seen {
				before[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}
	return nil
}

// mostOfCycle is how many members of a cycle a text names.
const mostOfCycle = 8

// CycleText names the members of a cycle, from the first back to itself.
func CycleText(members []string) string {
	shown := slices.Clone(members[:min(len(members), mostOfCycle)])
	if more := len(members) - mostOfCycle; more > 0 {
		shown = append(shown, fmt.Sprintf("%d more", more))
	}
	return strings.Join(append(shown, members[0]), " → ")
}

// way goes back from the last one to the first.
func way(before map[string]string, first, last string) []string {
	names := []string{last}
	for last != first {
		last = before[last]
		names = append(names, last)
	}
	slices.Reverse(names)
	return names
}

// needed is what the installation depends on, also by others.
func (n Neighbourhood) needed() map[string]bool { return reach(n.own.Name, n.dependenciesOf) }

// dependents is what depends on the installation, also by others.
func (n Neighbourhood) dependents() map[string]bool {
	by := map[string][]string{}
	for name, other := range n.byName {
		for _, needed := range dependencies(other) {
			by[needed] = append(by[needed], name)
		}
	}
	return reach(n.own.Name, func(name string) []string { return by[name] })
}

// reach is what is found from one name on.
func reach(from string, next func(string) []string) map[string]bool {
	found := map[string]bool{}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, name := range next(queue[0]) {
			if !found[name] {
				found[name] = true
				queue = append(queue, name)
			}
		}
	}
	return found
}

func (n Neighbourhood) dependenciesOf(name string) []string {
	if found := n.byName[name]; found != nil {
		return dependencies(found)
	}
	return nil
}

// dependencies of an installation, without itself: admission refuses that, and nothing waits for it.
func dependencies(one *v1.AddonInstallation) []string {
	if len(one.Spec.DependsOn) == 0 {
		return nil
	}
	names := make([]string, 0, len(one.Spec.DependsOn))
	for _, name := range one.Spec.DependsOn {
		if string(name) != one.Name {
			names = append(names, string(name))
		}
	}
	return names
}

// ranks of slots; those without come last.
var ranks = map[v1.Slot]int{v1.SlotCNI: 0, v1.SlotCPI: 1, v1.SlotCSI: 2, v1.SlotSystem: 3}

const rankOfRest = 4

func (n Neighbourhood) rank(one *v1.AddonInstallation) int {
	if rank, ok := ranks[n.slots[one.Spec.AddonRef.Name]]; ok {
		return rank
	}
	return rankOfRest
}

// held is an order by some others, the youngest first.
func held(why Held, others []*v1.AddonInstallation) Order {
	if len(others) == 0 {
		return Order{}
	}
	slices.SortFunc(others, func(a, b *v1.AddonInstallation) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	names := make([]string, 0, len(others))
	for _, other := range others {
		names = append(names, other.Name)
	}
	return Order{why, names}
}

// IsRemoved says whether an installation is to go. A core add-on that somebody deletes lives on
// while the core add-on controller protects it.
func IsRemoved(one *v1.AddonInstallation) bool {
	return !one.DeletionTimestamp.IsZero() && !IsProtected(one)
}

// GoesAlong says whether what an installation has is removed while its Cluster is being deleted.
func GoesAlong(one *v1.AddonInstallation) bool {
	return one.Status.OnClusterDeletion == v1.ClusterDeletionRemove && one.Spec.DeletionPolicy != v1.DeletionOrphan
}

// HasNothing says whether the user cluster has nothing of an installation, by what its status says.
func HasNothing(one *v1.AddonInstallation) bool {
	return one.Status.LastApplied == nil && one.Status.OnClusterDeletion == ""
}

// IsProtected says whether the core add-on controller keeps an installation.
func IsProtected(one *v1.AddonInstallation) bool {
	return one.Spec.CoreAddon && slices.Contains(one.Finalizers, v1.FinalizerCoreProtection)
}

// IsSettled says that an installation is Ready as it is asked for, with no other version under way.
func IsSettled(one *v1.AddonInstallation) bool {
	ready := meta.FindStatusCondition(one.Status.Conditions, v1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == one.Generation &&
		one.Status.Version == one.Status.Target && !IsRemoved(one)
}

func isApplied(one *v1.AddonInstallation) bool {
	return meta.IsStatusConditionTrue(one.Status.Conditions, v1.ConditionApplied)
}

// Stand is all of an installation that others wait for: what changes nothing in it need wake nobody.
type Stand struct {
	uid                               types.UID
	removed, idle, applied, isSettled bool
	goesAlong                         bool
	// version tells the end of a move that left it Ready all the time.
	version, addon, dependsOn, held string
}

// StandOf reads it.
func StandOf(one *v1.AddonInstallation) Stand {
	stand := Stand{
		uid: one.UID, removed: IsRemoved(one), idle: isIdle(one), applied: isApplied(one), isSettled: IsSettled(one),
		goesAlong: GoesAlong(one),
		version:   one.Status.Version, addon: string(one.Spec.AddonRef.Name),
	}
	for _, name := range one.Spec.DependsOn {
		stand.dependsOn += string(name) + " "
	}
	if condition := meta.FindStatusCondition(one.Status.Conditions, v1.ConditionApplied); condition != nil && IsHeld(condition.Reason) {
		stand.held = condition.Reason
	}
	return stand
}

// IsHeld says whether a reason is one of those that the order among installations gives.
func IsHeld(reason string) bool {
	return reason == v1.ReasonWaitingForOrder || reason == v1.ReasonDependencyMissing || reason == v1.ReasonDependencyCycle
}
