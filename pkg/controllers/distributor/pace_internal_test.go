package distributor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// authored has one Custom catalogue for each name, which weighs as many KiB.
type authored struct {
	t     *testing.T
	r     *Reconciler
	clock *clocktesting.FakeClock
	all   []v1.AddonCatalogue
	// due is when the next pass is to be made; 0: it need not.
	due time.Duration
	// reads are the generations that were read, by name.
	reads map[string][]int64
}

func newAuthored(t *testing.T) *authored {
	clock := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	a := &authored{t: t, clock: clock, reads: map[string][]int64{}}
	a.restart()
	return a
}

func (a *authored) restart() {
	a.r = &Reconciler{options: Options{Clock: a.clock, Namespace: "platform"}}
}

// put makes a catalogue with so many versions of so many KiB in all, or edits it.
func (a *authored) put(name string, versions, kib int, change ...func(*v1.AddonCatalogue)) {
	a.t.Helper()
	object := v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: name, UID: types.UID(name), Generation: 1}}
	at := slices.IndexFunc(a.all, func(one v1.AddonCatalogue) bool { return one.Name == name })
	if at >= 0 {
		object.Generation = a.all[at].Generation + 1
		a.all = slices.Delete(a.all, at, at+1)
	}
	addon := v1.Addon{Name: v1.AddonName(name)}
	for number := range versions {
		addon.Versions = append(addon.Versions, v1.AddonVersion{
			Version: fmt.Sprintf("1.%d.0", number), ValuesTemplate: strings.Repeat("x", max(0, kib<<10/versions-512)),
		})
	}
	object.Spec.Addons = []v1.Addon{addon}
	for _, set := range change {
		set(&object)
	}
	a.all = append(a.all, object)
}

func (a *authored) drop(name string) {
	a.all = slices.DeleteFunc(a.all, func(one v1.AddonCatalogue) bool { return one.Name == name })
}

// reconcileAll reads all after some time.
func (a *authored) reconcileAll(after time.Duration) *facts {
	a.t.Helper()
	a.clock.Step(after)
	f := &facts{}
	if outcome := a.r.readAll(a.t.Context(), f, slices.Clone(a.all)); outcome != nil {
		a.t.Fatal(outcome)
	}
	a.due = f.recheck
	return f
}

// reconcile gives the names of the catalogues that a pass read after some time, sorted.
func (a *authored) reconcile(after time.Duration) (names []string) {
	a.t.Helper()
	before := a.r.readings
	for _, found := range a.reconcileAll(after).readings {
		if found.refusal != nil {
			a.t.Fatal(found.refusal)
		}
		if found != before[found.object.UID] && found.waits == "" {
			names = append(names, found.object.Name)
			a.reads[found.object.Name] = append(a.reads[found.object.Name], found.generation)
		}
	}
	slices.Sort(names)
	return names
}

func (a *authored) expect(why string, after time.Duration, want ...string) {
	a.t.Helper()
	if got := a.reconcile(after); !slices.Equal(got, want) {
		a.t.Errorf("%s: %v were read, want %v", why, got, want)
	}
}

// generatedFrom makes a catalogue one of a repository's.
func generatedFrom(name string) func(*v1.AddonCatalogue) {
	return func(object *v1.AddonCatalogue) {
		object.Labels = map[string]string{v1.LabelRole: v1.RoleGenerated}
		object.OwnerReferences = []metav1.OwnerReference{{Name: name, UID: types.UID(name), Controller: new(true)}}
	}
}

// Red when one who edits in a loop is read as often as he writes, when the rate depends on how many catalogues he has, when others wait for
// that, and when the last edit does not arrive, at the time that was promised.
func TestEditsInALoopArePaced(t *testing.T) {
	t.Parallel()
	for _, loops := range []int{1, 4} {
		a := newAuthored(t)
		for number := range loops {
			a.put(fmt.Sprintf("loop-%d", number), 10, 1<<10)
		}
		a.put("quiet", 10, 200)
		a.reconcile(0)
		const seconds = 600
		for second := range seconds {
			a.put(fmt.Sprintf("loop-%d", second%loops), 10, 1<<10)
			if second%60 == 30 {
				a.put("quiet", 10, 20)
			}
			a.reconcile(time.Second)
			if last := a.all[len(a.all)-1]; second%60 == 30 && a.reads["quiet"][len(a.reads["quiet"])-1] != last.Generation {
				t.Errorf("%d loops: another's edit waits in second %d", loops, second)
			}
		}
		reads := 0
		for name, generations := range a.reads {
			if name != "quiet" {
				reads += len(generations) - 1 // the first one is not an edit
			}
		}
		// Each may go beyond what is free by one edit.
		if most := seconds*editsPerSecond>>20 + 2*loops; reads > most || reads < seconds*editsPerSecond>>21 {
			t.Errorf("%d loops: %d edits of 1 MiB were read in %d s, want at most %d", loops, reads, seconds, most)
		}
		for rounds := 0; a.due > 0; rounds++ {
			if rounds > 50 {
				t.Fatalf("%d loops: the last edits don't arrive", loops)
			}
			a.reconcile(a.due)
		}
		for i := range a.all {
			if generations := a.reads[a.all[i].Name]; generations[len(generations)-1] != a.all[i].Generation {
				t.Errorf("%d loops: the last edit of %s was not read", loops, a.all[i].Name)
			}
		}
	}
}

// Red when edits of almost nothing, each of which is written to all seeds and clusters, are as good as free.
func TestTheSmallestEditCountsToo(t *testing.T) {
	t.Parallel()
	a := newAuthored(t)
	a.put("small", 1, 1)
	a.reconcile(0)
	read := 0
	for range 600 {
		a.put("small", 1, 1)
		read += len(a.reconcile(100 * time.Millisecond))
	}
	if most := (editsFree+60*editsPerSecond)/leastEdit + 2; read > most {
		t.Errorf("%d of 600 edits in a minute were read, want at most %d", read, most)
	}
}

// Red when those who edit as people and pipelines do wait.
func TestThoseWhoEditNowAndThenDoNotWait(t *testing.T) {
	t.Parallel()
	a := newAuthored(t)
	a.put("busy", 10, 1<<10)
	a.put("hand", 10, 50)
	a.reconcile(0)
	for range 10 {
		a.put("busy", 10, 1<<10)
		a.expect("1 MiB a minute", time.Minute, "busy")
	}
	a.reconcile(10 * time.Minute)
	for range 8 {
		a.put("hand", 10, 50)
		a.expect("some small edits after each other", time.Second, "hand")
	}
	if len(a.r.pace.debts) != 1 {
		t.Errorf("they owe %v", a.r.pace.debts)
	}
	if a.expect("nothing", 10*time.Minute); len(a.r.pace.debts) != 0 {
		t.Errorf("after some time they owe %v", a.r.pace.debts)
	}
}

// Red when a commit that changes many add-ons does not go in one go as its catalogues arrive, when it counts as one of many authors, and
// when a second one goes along.
func TestACommitGoesInOneGo(t *testing.T) {
	t.Parallel()
	a := newAuthored(t)
	const addons = 200
	name := func(number int) string { return fmt.Sprintf("repository-%03d", number) }
	for number := range addons {
		a.put(name(number), 2, 20, generatedFrom("repository"))
	}
	a.reconcile(0)
	for number := range addons {
		a.put(name(number), 2, 20, generatedFrom("repository"))
		a.expect("a part of the commit", 100*time.Millisecond, name(number))
	}
	for number := range addons {
		a.put(name(number), 2, 20, generatedFrom("repository"))
	}
	if again := a.reconcile(time.Second); len(again) > editsFree/(20<<10)+5 { // what fitted into the first 512 KiB goes once more
		t.Errorf("%d catalogues of the next commit are read at once", len(again))
	}
	if owed := a.r.pace.debts[account{author: "repository"}].bytes; len(a.r.pace.debts) != 1 || owed < 3<<20 {
		t.Errorf("debts are %v", a.r.pace.debts)
	}
	for rounds := 0; a.due > 0 && rounds < 50; rounds++ {
		a.reconcile(a.due)
	}
	for number := range addons {
		if got := a.reads[name(number)]; got[len(got)-1] != 3 {
			t.Errorf("%s was read in generations %v", name(number), got)
		}
	}
}

// Red when what is there at the start waits, or makes later edits wait; when a new catalogue waits for who edits in a loop, or new ones
// come without end, or Core ones wait for that; and when one that was made again waits for what was read of the former.
func TestNewCataloguesDoNotWait(t *testing.T) {
	t.Parallel()
	a := newAuthored(t)
	for _, name := range []string{"a", "b"} {
		a.put(name, 10, 8<<10)
	}
	a.expect("all that is there", 0, "a", "b")
	a.put("a", 10, 8<<10)
	a.expect("an edit", 0, "a")
	a.put("a", 10, 8<<10)
	a.expect("the next edit", time.Second)
	a.put("c", 10, 1<<10)
	a.expect("a new one", 0, "c")
	a.restart()
	a.expect("after a restart", 0, "a", "b", "c")

	a.put("a", 10, 8<<10)
	a.put("a", 10, 8<<10)
	a.expect("an edit after it", 0, "a")
	a.drop("a")
	a.expect("a deletion", time.Second)
	if _, there := a.r.readings["a"]; there {
		t.Error("what was deleted goes on to count")
	}
	a.put("a", 10, 1<<10)
	a.expect("the same name again", time.Second, "a")

	read := 0
	for number := range 100 {
		a.put(fmt.Sprintf("new-%d", number), 10, 1<<10)
		read += len(a.reconcile(time.Second))
		a.drop(fmt.Sprintf("new-%d", number-1))
	}
	if most := newFree>>20 + 100*newPerSecond>>20 + 1; read > most || read < most/2 {
		t.Errorf("%d new catalogues of 1 MiB were read in 100 s, want at most %d", read, most)
	}
	a.put("new-last", 10, 1<<10)
	a.reconcile(0)
	if found := a.r.readings["new-last"]; !found.isHeld() || !strings.HasPrefix(found.waits, "it is new, and waits until about ") {
		t.Errorf("a new one that waits: held %t, %q", found.isHeld(), found.waits)
	}
	due := a.due
	a.put("new-core", 10, 1<<10, func(object *v1.AddonCatalogue) { object.Spec.Type = v1.CatalogueCore })
	a.expect("a new Core catalogue", 0, "new-core")
	if a.reconcile(due); a.r.readings["new-last"].waits != "" {
		t.Error("it waits longer than promised")
	}
}

// Red when what was read of a catalogue keeps the list in memory that it was read from: each pass has another one, with all catalogues.
func TestAReadingKeepsNoListInMemory(t *testing.T) {
	t.Parallel()
	a := newAuthored(t)
	a.put("a", 10, 8)
	a.reconcile(0)
	if found := a.r.readings["a"]; found.spec == nil || found.spec == &found.object.Spec {
		t.Error("the spec that was read is a part of the list")
	}
}

// Red when a catalogue that waits is told otherwise with each pass, or something else than why and until when.
func TestWhatWaitsIsReportedOnce(t *testing.T) {
	t.Parallel()
	a := newAuthored(t)
	a.put("loop", 10, 1<<10)
	a.reconcile(0)
	a.put("loop", 10, 1<<10)
	a.reconcile(0)
	reported := map[string]bool{}
	for range 20 {
		a.put("loop", 10, 1<<10)
		a.reconcile(time.Second)
		reported[a.r.readings["loop"].waits] = true
	}
	const want = `its edit waits until about 13:47:05 UTC: catalogue "loop", with all that is generated from it, changed 1.0 MiB within a ` +
		`short time, and the master reads 20.0 KiB a second of such changes, less while more authors change catalogues; the seeds keep the last ` +
		`content until then`
	if len(reported) != 1 || !reported[want] {
		t.Errorf("told %v", reported)
	}
	for number := range 19 {
		a.put(fmt.Sprintf("other-%d", number), 1, 1<<10)
	}
	a.reconcile(0)
	for number := range 19 {
		a.put(fmt.Sprintf("other-%d", number), 1, 1<<10)
	}
	a.reconcile(time.Second)
	a.put("other-0", 1, 1<<10)
	a.reconcile(time.Second)
	if text := a.r.readings["other-0"].waits; !strings.Contains(text, " 2.5 KiB a second of such changes") {
		t.Errorf("told %q", text)
	}
}

// Red when a catalogue in git does not say that what is generated from it waits, or says another thing with each order of a cache.
func TestARepositorySaysThatItsAddonsWait(t *testing.T) {
	t.Parallel()
	generated := func(name, waits string) *reading {
		found := &reading{object: &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}, waits: waits}
		generatedFrom("team")(found.object)
		return found
	}
	team := &reading{object: &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "team"}}}
	soon, later, read := generated("soon", "it waits until 1"), generated("later", "it waits until 2"), generated("read", "")
	for _, order := range [][]*reading{{soon, later, read, team}, {team, read, later, soon}} {
		if part := partsOf(&facts{readings: order})["team"]; part == nil || part.Waits != "it waits until 1" {
			t.Errorf("it says %+v", part)
		}
	}
	if parts := partsOf(&facts{readings: []*reading{read, team}}); parts["team"] != nil && parts["team"].Waits != "" {
		t.Errorf("all were read, and it says %+v", parts["team"])
	}
}
