package installation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
)

// made is an installation of the add-on of its own name, at generation 1.
func made(name string, dependsOn ...string) v1.AddonInstallation {
	one := v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
	one.Spec.AddonRef.Name = v1.AddonName(name)
	for _, other := range dependsOn {
		one.Spec.DependsOn = append(one.Spec.DependsOn, v1.InstallationName(other))
	}
	return one
}

func with(one v1.AddonInstallation, changes ...func(*v1.AddonInstallation)) v1.AddonInstallation {
	for _, change := range changes {
		change(&one)
	}
	return one
}

func says(one *v1.AddonInstallation, kind string) {
	one.Status.Conditions = append(one.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, ObservedGeneration: 1})
}

func applied(one *v1.AddonInstallation) { says(one, v1.ConditionApplied) }

func ready(one *v1.AddonInstallation) {
	applied(one)
	says(one, v1.ConditionReady)
	one.Status.Version, one.Status.Target = "1", "1"
}

func edited(one *v1.AddonInstallation)  { one.Generation++ }
func moving(one *v1.AddonInstallation)  { one.Status.Target = "2" }
func paused(one *v1.AddonInstallation)  { one.Spec.Paused = true }
func deleted(one *v1.AddonInstallation) { one.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func ofKKP(one *v1.AddonInstallation) {
	one.Status.Conditions = []metav1.Condition{{Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1.ReasonKKPAddonExists}}
}

func guarded(one *v1.AddonInstallation) {
	one.Spec.CoreAddon, one.Finalizers = true, []string{v1.FinalizerCoreProtection}
}

func core(one *v1.AddonInstallation)   { one.Spec.CoreAddon = true }
func byUser(one *v1.AddonInstallation) { one.Spec.CoreAddon = false }

func failing(one *v1.AddonInstallation) {
	if len(one.Status.Conditions) == 0 {
		ready(one)
	}
	one.Status.Conditions[len(one.Status.Conditions)-1].Status = metav1.ConditionFalse
}

func youngest(one *v1.AddonInstallation) { one.CreationTimestamp = metav1.Unix(9, 0) }

var slots = map[v1.AddonName]v1.Slot{
	"cni": v1.SlotCNI, "cni2": v1.SlotCNI, "cpi": v1.SlotCPI, "csi": v1.SlotCSI, "system": v1.SlotSystem, "odd": "Odd",
}

func of(all ...v1.AddonInstallation) installation.Neighbourhood {
	return installation.NeighbourhoodOf(&all[0], all[1:], slots)
}

// Red when one of the rules is left out.
func TestWhatAFirstApplyWaitsFor(t *testing.T) {
	for _, test := range []struct {
		why  string
		all  []v1.AddonInstallation
		held installation.Held
		by   []string
	}{
		{why: "nothing is asked", all: []v1.AddonInstallation{made("web"), made("other")}},
		{why: "a dependency is Ready", all: []v1.AddonInstallation{made("web", "db"), with(made("db"), ready)}},
		{"one has no status yet", []v1.AddonInstallation{made("web", "db"), made("db")}, installation.HeldByDependencies, []string{"db"}},
		{"Applied is not Ready", []v1.AddonInstallation{made("web", "db"), with(made("db"), applied)}, installation.HeldByDependencies, []string{"db"}},
		{
			"Ready speaks of another generation", []v1.AddonInstallation{made("web", "db"), with(made("db"), ready, edited)},
			installation.HeldByDependencies, []string{"db"},
		},
		{
			"another version is under way", []v1.AddonInstallation{made("web", "db"), with(made("db"), ready, moving)},
			installation.HeldByDependencies, []string{"db"},
		},
		{
			"one is being deleted", []v1.AddonInstallation{made("web", "db"), with(made("db"), ready, deleted)},
			installation.HeldByDependencies, []string{"db"},
		},
		{
			why: "one that is protected lives on",
			all: []v1.AddonInstallation{made("web", "db"), with(made("db"), ready, deleted, guarded)},
		},
		{
			"a core add-on that nobody protects goes",
			[]v1.AddonInstallation{made("web", "db"), with(made("db"), ready, deleted, core)}, installation.HeldByDependencies, []string{"db"},
		},
		{
			"the finalizer on another's protects nothing",
			[]v1.AddonInstallation{made("web", "db"), with(made("db"), ready, deleted, guarded, byUser)}, installation.HeldByDependencies,
			[]string{"db"},
		},
		{
			"what is not Ready is told before slots, and says False", []v1.AddonInstallation{made("web", "db"), with(made("db"), failing)},
			installation.HeldByDependencies, []string{"db"},
		},
		{
			"what is missing is told before what is not Ready", []v1.AddonInstallation{made("web", "db", "mq", "kv"), made("db")},
			installation.HeldByMissing, []string{"mq", "kv"},
		},
		{
			"a circle is told before all else, the shortest, from itself on",
			[]v1.AddonInstallation{made("a", "gone", "b"), made("b", "c", "d"), made("c", "d"), made("d", "a")},
			installation.HeldByCycle, []string{"a", "b", "d"},
		},
		{
			"a circle of others is theirs", []v1.AddonInstallation{made("web", "a"), made("a", "b"), made("b", "a")},
			installation.HeldByDependencies, []string{"a"},
		},
		{why: "nothing waits for itself", all: []v1.AddonInstallation{made("web", "web")}},
		{why: "nothing comes before the network", all: []v1.AddonInstallation{made("cni"), made("cni2"), made("cpi"), made("web")}},
		{
			"the provider waits until the network is Applied", []v1.AddonInstallation{made("cpi"), made("cni"), with(made("cni2"), applied), made("csi")},
			installation.HeldBySlot, []string{"cni"},
		},
		{
			"storage waits for both", []v1.AddonInstallation{made("csi"), made("cni"), with(made("cpi"), youngest), made("system")},
			installation.HeldBySlot, []string{"cpi", "cni"},
		},
		{why: "that others are Applied is enough", all: []v1.AddonInstallation{made("system"), with(made("csi"), applied), made("web")}},
		{
			"the rest waits until all are Ready", []v1.AddonInstallation{made("web"), with(made("cni"), ready), with(made("system"), applied), made("x")},
			installation.HeldBySlot, []string{"system"},
		},
		{"an unknown slot is the rest", []v1.AddonInstallation{made("odd"), with(made("system"), applied)}, installation.HeldBySlot, []string{"system"}},
		{
			why: "paused and deleted ones don't count for slots",
			all: []v1.AddonInstallation{made("web"), with(made("cni"), paused), with(made("cpi"), deleted)},
		},
		{
			why: "what KKP has by itself does not count for slots",
			all: []v1.AddonInstallation{made("web"), with(made("cni"), ofKKP)},
		},
		{
			why: "what depends on it, by others, does not count for slots",
			all: []v1.AddonInstallation{made("web"), made("cni", "between"), made("between", "web")},
		},
		{
			"dependencies are told before slots", []v1.AddonInstallation{made("web", "db"), made("db"), made("cni")},
			installation.HeldByDependencies, []string{"db"},
		},
	} {
		want := installation.Order{Held: test.held, By: test.by}
		if diff := cmp.Diff(want, of(test.all...).BeforeFirstApply()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}
}

// Red when the list decides about the installation itself, and not what is given as such: a cache may be behind what a pass knows.
func TestWhatIsGivenCountsForItself(t *testing.T) {
	own, listed := made("web", "db"), made("web")
	got := installation.NeighbourhoodOf(&own, []v1.AddonInstallation{listed, with(made("db", "web"), ready)}, slots).BeforeFirstApply()
	if want := (installation.Order{Held: installation.HeldByCycle, By: []string{"web", "db"}}); !cmp.Equal(want, got) {
		t.Errorf("it is %+v, want %+v", got, want)
	}
}

// Red when a circle of hundreds is told in full, or a short one is not.
func TestALongCircleIsReportedInPart(t *testing.T) {
	if got, want := installation.CycleText([]string{"a", "b"}), "a → b → a"; got != want {
		t.Errorf("it is %q, want %q", got, want)
	}
	long := strings.Split("abcdefghijkl", "")
	if got, want := installation.CycleText(long), "a → b → c → d → e → f → g → h → 4 more → a"; got != want {
		t.Errorf("it is %q, want %q", got, want)
	}
}

// Red when a change that others wait for wakes nobody, or when one that tells them nothing does.
func TestOrderStateIsWhatOthersWaitFor(t *testing.T) {
	held := func(reason string) func(*v1.AddonInstallation) {
		return func(one *v1.AddonInstallation) {
			one.Status.Conditions = []metav1.Condition{{Type: v1.ConditionApplied, Status: metav1.ConditionFalse, Reason: reason}}
		}
	}
	for _, test := range []struct {
		why           string
		before, after v1.AddonInstallation
		same          bool
	}{
		{"another of the name", made("web"), with(made("web"), func(one *v1.AddonInstallation) { one.UID = "other" }), false},
		{"it is deleted", made("web"), with(made("web"), deleted), false},
		{"it is paused", made("web"), with(made("web"), paused), false},
		{"it is applied", made("web"), with(made("web"), applied), false},
		{"it is Ready", with(made("web"), ready, failing), with(made("web"), ready), false},
		{"it has another version, Ready all the time", with(made("web"), ready), with(made("web"), ready, func(one *v1.AddonInstallation) {
			one.Status.Version, one.Status.Target = "2", "2"
		}), false},
		{"it is of another add-on", made("web"), with(made("web"), func(one *v1.AddonInstallation) { one.Spec.AddonRef.Name = "x" }), false},
		{"it depends on others", made("web"), made("web", "db"), false},
		{"it waits", made("web"), with(made("web"), held(v1.ReasonWaitingForOrder)), false},
		{"it waits for what is missing", made("web"), with(made("web"), held(v1.ReasonDependencyMissing)), false},
		{"it is in a circle", made("web"), with(made("web"), held(v1.ReasonDependencyCycle)), false},
		{"what it waits for besides is its own", made("web"), with(made("web"), held("Other")), true},
		{"how often it failed is its own", made("web"), with(made("web"), func(one *v1.AddonInstallation) { one.Status.Failures++ }), true},
	} {
		if same := installation.OrderStateOf(&test.before) == installation.OrderStateOf(&test.after); same != test.same {
			t.Errorf("%s: the same: %v", test.why, same)
		}
	}
}

// Red when slots, missing ones or circles hold what is applied already, or when a dependency that moves holds nothing.
func TestWhatAnotherVersionWaitsFor(t *testing.T) {
	for _, test := range []struct {
		why   string
		all   []v1.AddonInstallation
		moves string
		by    []string
	}{
		{why: "slots are for a first apply", all: []v1.AddonInstallation{made("web", "db"), with(made("db"), ready), made("cni")}},
		{why: "what is missing holds nothing", all: []v1.AddonInstallation{made("web", "db")}},
		{why: "nor does a circle", all: []v1.AddonInstallation{made("web", "db"), made("db", "x"), made("x", "web")}},
		{why: "what is not Ready does", all: []v1.AddonInstallation{made("web", "db"), made("db")}, by: []string{"db"}},
		{why: "or has another version under way", all: []v1.AddonInstallation{made("web", "db"), with(made("db"), ready, moving)}, by: []string{"db"}},
		{why: "or is about to", all: []v1.AddonInstallation{made("web", "db"), with(made("db"), ready)}, moves: "db", by: []string{"db"}},
		{why: "others may move", all: []v1.AddonInstallation{made("web", "db"), with(made("db"), ready), made("x")}, moves: "x"},
	} {
		want := installation.Order{By: test.by}
		if test.by != nil {
			want.Held = installation.HeldByDependencies
		}
		got := of(test.all...).BeforeVersion(func(other *v1.AddonInstallation) bool { return other.Name == test.moves })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}
}

// Red when a removal does not wait for what needs it, or waits for what stays, or for what it needs itself.
func TestWhatARemovalWaitsFor(t *testing.T) {
	for _, test := range []struct {
		why string
		all []v1.AddonInstallation
		by  []string
	}{
		{why: "what depends on it stays", all: []v1.AddonInstallation{made("db"), made("web", "db")}},
		{why: "what depends on it goes too", all: []v1.AddonInstallation{made("db"), with(made("web", "db"), deleted), with(made("x"), deleted)}, by: []string{"web"}},
		{why: "it depends on what goes", all: []v1.AddonInstallation{made("web", "db"), with(made("db"), deleted)}},
		{why: "a circle goes", all: []v1.AddonInstallation{made("a", "b"), with(made("b", "a"), deleted)}},
		{
			why: "later slots go first", by: []string{"system", "web"},
			all: []v1.AddonInstallation{made("csi"), with(made("web"), deleted), with(made("system"), deleted), with(made("cni"), deleted), made("x")},
		},
		{why: "a later slot that it needs goes after it", all: []v1.AddonInstallation{made("cni", "web"), with(made("web"), deleted)}},
		{why: "one that is protected stays", all: []v1.AddonInstallation{made("cni"), with(made("web"), deleted, guarded)}},
	} {
		want := installation.Order{By: test.by}
		if test.by != nil {
			want.Held = installation.HeldByRemovals
		}
		if diff := cmp.Diff(want, of(test.all...).BeforeRemoval(false)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}
}

// Red when a removal from a cluster that goes waits for what is let go, or not for what goes along and needs it.
func TestWhatWaitsWhereAClusterGoes(t *testing.T) {
	along := func(one *v1.AddonInstallation) { one.Status.OnClusterDeletion = v1.ClusterDeletionRemove }
	orphaned := func(one *v1.AddonInstallation) { one.Spec.DeletionPolicy = v1.DeletionOrphan }
	for _, test := range []struct {
		why string
		all []v1.AddonInstallation
		by  []string
	}{
		{why: "what goes along goes first", all: []v1.AddonInstallation{made("db"), with(made("web", "db"), along)}, by: []string{"web"}},
		{why: "also of a later slot, and deleted", all: []v1.AddonInstallation{made("csi"), with(made("web"), along, deleted)}, by: []string{"web"}},
		{why: "what lives is let go", all: []v1.AddonInstallation{made("db"), made("web", "db")}},
		{why: "what is deleted is let go", all: []v1.AddonInstallation{made("db"), with(made("web", "db"), deleted)}},
		{why: "what is to stay stays", all: []v1.AddonInstallation{made("db"), with(made("web", "db"), along, orphaned)}},
		{why: "what it needs goes after it", all: []v1.AddonInstallation{made("web", "db"), with(made("db"), along)}},
	} {
		want := installation.Order{By: test.by}
		if test.by != nil {
			want.Held = installation.HeldByRemovals
		}
		if diff := cmp.Diff(want, of(test.all...).BeforeRemoval(true)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}
}

// fleet is a cluster of up to 24 installations that depend on each other at random, in which some have slots.
func fleet(random *rand.Rand) []v1.AddonInstallation {
	all := make([]v1.AddonInstallation, 2+random.IntN(23))
	for i := range all {
		name := fmt.Sprintf("i%d", i)
		all[i] = made(name)
		for range random.IntN(3) {
			all[i].Spec.DependsOn = append(all[i].Spec.DependsOn, v1.InstallationName(fmt.Sprintf("i%d", random.IntN(len(all)))))
		}
		all[i].Spec.AddonRef.Name = []v1.AddonName{"cni", "cpi", "csi", "system", "x", "y"}[random.IntN(6)]
		all[i].CreationTimestamp = metav1.Unix(random.Int64N(3), 0)
	}
	return all
}

// reaches says by a way of its own which installations are found from one by its dependencies.
func reaches(all []v1.AddonInstallation) [][]bool {
	found := make([][]bool, len(all))
	for i := range all {
		found[i] = make([]bool, len(all))
		for j := range all {
			found[i][j] = i != j && slices.Contains(all[i].Spec.DependsOn, v1.InstallationName(all[j].Name))
		}
	}
	for k := range all {
		for i := range all {
			for j := range all {
				found[i][j] = found[i][j] || found[i][k] && found[k][j]
			}
		}
	}
	return found
}

// Red when something waits for ever that is in no circle and needs none, when one of a circle is not told its members, when something
// waits for itself, or when an installation is applied before what it depends on is Ready.
func TestWhatHasNoCircleIsAppliedAtLast(t *testing.T) {
	for seed := range uint64(800) {
		random := rand.New(rand.NewPCG(seed, 58))
		all := fleet(random)
		found := reaches(all)
		inCircle := func(i int) bool { return found[i][i] }
		done := make([]bool, len(all))
		for range 8 * len(all) {
			progress, bySlot := false, []int{}
			for _, i := range random.Perm(len(all)) {
				if done[i] {
					continue
				}
				got := installation.NeighbourhoodOf(&all[i], all, slots).BeforeFirstApply()
				checkOrder(t, all, i, inCircle(i), got)
				switch got.Held {
				case installation.HeldByNothing:
					done[i], progress = true, true
					apply(random, &all[i])
				case installation.HeldBySlot:
					bySlot = append(bySlot, i)
				}
			}
			for i := range all { // what was Applied gets Ready
				if done[i] && !installation.IsSettled(&all[i]) {
					ready(&all[i])
					progress = true
				}
			}
			if !progress && len(bySlot) > 0 { // the timeout
				done[bySlot[0]] = true
				ready(&all[bySlot[0]])
			}
		}
		for i := range all {
			needsCircle := inCircle(i)
			for j := range all {
				needsCircle = needsCircle || found[i][j] && inCircle(j)
			}
			if done[i] == needsCircle {
				t.Fatalf("seed %d: %s is applied: %t, needs a circle: %t", seed, all[i].Name, done[i], needsCircle)
			}
		}
	}
}

func apply(random *rand.Rand, one *v1.AddonInstallation) {
	if random.IntN(2) == 0 {
		applied(one)
		return
	}
	ready(one)
}

func checkOrder(t *testing.T, all []v1.AddonInstallation, own int, inCircle bool, got installation.Order) {
	t.Helper()
	name := all[own].Name
	if isCircle := got.Held == installation.HeldByCycle; isCircle != inCircle {
		t.Fatalf("%s in a circle: %t, told %+v", name, inCircle, got)
	}
	if got.Held == installation.HeldByNothing {
		for i := range all {
			if i != own && slices.Contains(all[own].Spec.DependsOn, v1.InstallationName(all[i].Name)) && !installation.IsSettled(&all[i]) {
				t.Fatalf("%s comes before %s, which it depends on", name, all[i].Name)
			}
		}
	}
	if got.Held != installation.HeldByCycle {
		if slices.Contains(got.By, name) {
			t.Fatalf("%s waits for itself: %+v", name, got)
		}
		return
	}
	for i, member := range got.By {
		next := v1.InstallationName(got.By[(i+1)%len(got.By)])
		at := slices.IndexFunc(all, func(one v1.AddonInstallation) bool { return one.Name == member })
		if got.By[0] != name || !slices.Contains(all[at].Spec.DependsOn, next) {
			t.Fatalf("%v is no circle of %s", got.By, name)
		}
	}
}

// Red when removals that all began can hold each other by their dependencies alone.
func TestRemovalsByDependencyNeverHoldEachOther(t *testing.T) {
	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(seed, 85))
		all := fleet(random)
		for i := range all {
			deleted(&all[i])
		}
		for range 30 {
			before := slices.Clone(all)
			all = slices.DeleteFunc(all, func(one v1.AddonInstallation) bool {
				return installation.NeighbourhoodOf(&one, before, nil).BeforeRemoval(false).Held == installation.HeldByNothing
			})
		}
		if len(all) > 0 {
			t.Fatalf("seed %d: %d hold each other", seed, len(all))
		}
	}
}

// Red when a decision takes more than its share for a cluster of eight times as many installations. It counts allocations, of which each
// visit of an installation takes some: they don't depend on the machine.
func TestOrderIsLinear(t *testing.T) {
	// fleet has installations that each depend on the next 16, of the first too if they are a ring, and of an early slot every tenth.
	fleet := func(count int, isRing bool) (all []v1.AddonInstallation) {
		for i := range count {
			one := made(fmt.Sprintf("i%d", i))
			if i%10 == 0 {
				one.Spec.AddonRef.Name = "cni"
			}
			for next := i + 1; next <= i+16 && (isRing || next < count); next++ {
				one.Spec.DependsOn = append(one.Spec.DependsOn, v1.InstallationName(fmt.Sprintf("i%d", next%count)))
			}
			all = append(all, one)
		}
		return all
	}
	decide := func(all []v1.AddonInstallation, own int) float64 {
		return testing.AllocsPerRun(1, func() {
			one := installation.NeighbourhoodOf(&all[own], all, slots)
			one.BeforeFirstApply()
			one.BeforeVersion(func(*v1.AddonInstallation) bool { return false })
			one.BeforeRemoval(false)
		})
	}
	for _, isRing := range []bool{true, false} {
		small, large := fleet(100, isRing), fleet(800, isRing)
		for _, isLast := range []bool{false, true} { // the last of a row depends on none, and all others on it
			few, many := decide(small, 0), decide(large, 0)
			if isLast {
				few, many = decide(small, len(small)-1), decide(large, len(large)-1)
			}
			if many > 10*few {
				t.Errorf("ring %t, last %t: %.0f allocations for 100, %.0f for 800", isRing, isLast, few, many)
			}
		}
	}
}
