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
	// HeldByNothing: it does not wait.
	HeldByNothing Held = ""
	// HeldByCycle: it depends on itself, through others.
	HeldByCycle Held = "Cycle"
	// HeldByMissing: it depends on an installation that does not exist.
	HeldByMissing Held = "Missing"
	// HeldByDependencies: an installation that it depends on is not Ready.
	HeldByDependencies Held = "Dependencies"
	// HeldBySlot: an installation with an earlier slot is not in the required state.
	HeldBySlot Held = "Slot"
	// HeldByRemovals: an installation that depends on it, or has a later slot, is being removed too.
	HeldByRemovals Held = "Removals"
)

// Order has the installations that an installation waits for.
type Order struct {
	Held Held
	// By names the others. Of a cycle: in the order in which each depends on the next one, from the installation itself,
	// which the last one depends on. Of slots and removals: the youngest first, since it is usually ready last.
	By []string
}

// Neighbourhood is an installation with the others of its cluster. It decides the order among them;
// each decision is linear in the cluster's installations and their dependencies.
type Neighbourhood struct {
	own    *v1.AddonInstallation
	byName map[string]*v1.AddonInstallation
	slots  map[v1.AddonName]v1.Slot
}

// NeighbourhoodOf takes an installation and all of its cluster, with or without itself; the given state of the
// installation counts. Argument slots has the slots of add-ons; add-ons without a slot come last. Nothing is changed.
func NeighbourhoodOf(own *v1.AddonInstallation, all []v1.AddonInstallation, slots map[v1.AddonName]v1.Slot) Neighbourhood {
	byName := make(map[string]*v1.AddonInstallation, len(all)+1)
	for i := range all {
		byName[all[i].Name] = &all[i]
	}
	byName[own.Name] = own
	return Neighbourhood{own: own, byName: byName, slots: slots}
}

// BeforeFirstApply returns the order until the installation is applied for the first time.
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

// BeforeVersion returns the order until another version of the installation is applied. moves says that an installation
// is about to get another version. The order leaves out missing installations, and those that depend on the
// installation itself.
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

// BeforeRemoval returns the order for the removal of the installation: others that are removed too, and depend on it
// or have a later slot. Its own dependencies are removed after it. While the cluster is being deleted, only
// installations that go along are removed.
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

// bySlot are those with an earlier slot that are not in the required state: Applied for an installation that has a
// slot itself, otherwise Ready. Paused and removed ones, and those that KKP itself has, don't count, nor do those
// that depend on the installation: both would wait for each other.
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

// isIdle says whether an installation is not reconciled: it is paused, or KKP itself has the add-on.
func isIdle(one *v1.AddonInstallation) bool {
	ready := meta.FindStatusCondition(one.Status.Conditions, v1.ConditionReady)
	return one.Spec.Paused || ready != nil && ready.Reason == v1.ReasonKKPAddonExists
}

// Cycle is a shortest path by which the installation depends on itself, beginning with it; nil if there is none.
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

// way follows the path back from the last one to the first.
func way(before map[string]string, first, last string) []string {
	names := []string{last}
	for last != first {
		last = before[last]
		names = append(names, last)
	}
	slices.Reverse(names)
	return names
}

// needed are the dependencies of the installation, also indirect ones.
func (n Neighbourhood) needed() map[string]bool { return reach(n.own.Name, n.dependenciesOf) }

// dependents are the installations that depend on the installation, also indirectly.
func (n Neighbourhood) dependents() map[string]bool {
	by := map[string][]string{}
	for name, other := range n.byName {
		for _, needed := range dependencies(other) {
			by[needed] = append(by[needed], name)
		}
	}
	return reach(n.own.Name, func(name string) []string { return by[name] })
}

// reach has all names that can be reached from one name.
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

// dependencies of an installation, without itself: admission refuses that, and no installation waits for it.
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

// ranks of slots; add-ons without a slot come last.
var ranks = map[v1.Slot]int{v1.SlotCNI: 0, v1.SlotCPI: 1, v1.SlotCSI: 2, v1.SlotSystem: 3}

const rankOfRest = 4

func (n Neighbourhood) rank(one *v1.AddonInstallation) int {
	if rank, ok := ranks[n.slots[one.Spec.AddonRef.Name]]; ok {
		return rank
	}
	return rankOfRest
}

// held is an order with these other installations, the youngest first.
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

// IsRemoved says whether an installation is to be removed. A core add-on that a user deletes stays while the core
// add-on controller protects it.
func IsRemoved(one *v1.AddonInstallation) bool {
	return !one.DeletionTimestamp.IsZero() && !IsProtected(one)
}

// GoesAlong says whether an installation's objects are removed while its Cluster is being deleted.
func GoesAlong(one *v1.AddonInstallation) bool {
	return one.Status.OnClusterDeletion == v1.ClusterDeletionRemove && one.Spec.DeletionPolicy != v1.DeletionOrphan
}

// HasNothing says whether the user cluster has no objects of an installation, according to its status.
func HasNothing(one *v1.AddonInstallation) bool {
	return one.Status.LastApplied == nil && one.Status.OnClusterDeletion == ""
}

// IsProtected says whether the core add-on controller protects an installation.
func IsProtected(one *v1.AddonInstallation) bool {
	return one.Spec.CoreAddon && slices.Contains(one.Finalizers, v1.FinalizerCoreProtection)
}

// IsSettled says that an installation is Ready at its present spec, and that no change of its version is in progress.
func IsSettled(one *v1.AddonInstallation) bool {
	ready := meta.FindStatusCondition(one.Status.Conditions, v1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == one.Generation &&
		one.Status.Version == one.Status.Target && !IsRemoved(one)
}

func isApplied(one *v1.AddonInstallation) bool {
	return meta.IsStatusConditionTrue(one.Status.Conditions, v1.ConditionApplied)
}

// OrderState has everything that other installations wait for: a change that leaves it equal need not wake them.
type OrderState struct {
	uid                               types.UID
	removed, idle, applied, isSettled bool
	goesAlong                         bool
	// version shows the end of a move during which the installation was Ready all the time.
	version, addon, dependsOn, held string
}

// OrderStateOf is the OrderState of an installation.
func OrderStateOf(one *v1.AddonInstallation) OrderState {
	state := OrderState{
		uid: one.UID, removed: IsRemoved(one), idle: isIdle(one), applied: isApplied(one), isSettled: IsSettled(one),
		goesAlong: GoesAlong(one),
		version:   one.Status.Version, addon: string(one.Spec.AddonRef.Name),
	}
	for _, name := range one.Spec.DependsOn {
		state.dependsOn += string(name) + " "
	}
	if condition := meta.FindStatusCondition(one.Status.Conditions, v1.ConditionApplied); condition != nil && IsHeld(condition.Reason) {
		state.held = condition.Reason
	}
	return state
}

// IsHeld says whether a reason is from the order among installations.
func IsHeld(reason string) bool {
	return reason == v1.ReasonWaitingForOrder || reason == v1.ReasonDependencyMissing || reason == v1.ReasonDependencyCycle
}
