package distributor

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/budget"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// Red when Core catalogues wait; when an edit that takes versions out does not go before others, or does so again and again.
func TestWhatIsUrgentDoesNotWait(t *testing.T) {
	t.Parallel()
	a := newAuthored(t)
	core := func(object *v1.AddonCatalogue) { object.Spec.Type = v1.CatalogueCore }
	a.put("core", 10, 1<<10, core)
	a.put("custom", 10, 1<<10)
	a.reconcile(0)
	for range 5 {
		a.put("core", 10, 1<<10, core)
		a.expect("an edit of a Core catalogue", time.Second, "core")
	}
	a.put("custom", 10, 1<<10)
	a.expect("an edit", 0, "custom")
	a.put("custom", 10, 1<<10)
	a.expect("the next", 0)
	a.put("custom", 9, 1<<10)
	a.expect("one with fewer versions", 0, "custom")
	a.put("custom", 8, 1<<10)
	a.expect("the next one with fewer", 0)
	a.expect("the same, once time repaid what was urgent", a.due, "custom")
}

// Red when one catalogue of a repository waits with a version that is to go since all of the repository changed, when a commit that takes
// versions out of many does not go in one go, or when commits that do so come one after the other.
func TestWhatIsUrgentInALargeRepositoryDoesNotWait(t *testing.T) {
	t.Parallel()
	a := newAuthored(t)
	const addons = 100
	names := make([]string, addons)
	commit := func(versions int, which ...string) {
		for _, name := range which {
			a.put(name, versions, 60, generatedFrom("repository"))
		}
	}
	for number := range addons {
		names[number] = fmt.Sprintf("repository-%03d", number)
	}
	commit(9, names...)
	a.reconcile(0)
	for range 2 {
		commit(9, names...)
		a.reconcile(time.Second)
	}
	if owed := a.r.pace.debts[account{author: "repository"}].bytes; owed < 5<<20 {
		t.Fatalf("the repository owes %.0f bytes", owed)
	}
	commit(8, names[7])
	a.expect("a version is taken out of one", time.Second, names[7])
	commit(8, names...)
	if read := a.reconcile(time.Second); len(read) < addons-1 {
		t.Errorf("%d catalogues of a commit that takes versions out are read", len(read))
	}
	commit(7, names...)
	if read := a.reconcile(time.Second); len(read) > 1 {
		t.Errorf("%d catalogues of the next one are read at once", len(read))
	}
}

// Red when many authors together are read without bound, at once or in the long run, or when those who change little wait for them.
func TestManyAuthorsHaveAPaceTogether(t *testing.T) {
	t.Parallel()
	a := newAuthored(t)
	const authors, seconds = 1000, 300
	name := func(number int) string { return fmt.Sprintf("author-%04d", number) }
	for number := range authors {
		a.put(name(number), 1, 8)
	}
	quiet := func(number int) string { return fmt.Sprintf("quiet-%d", number) }
	for number := range seconds / 60 {
		a.put(quiet(number), 10, 200)
	}
	a.put("hand", 10, 20)
	a.reconcile(0)
	read := 0
	for second := range seconds {
		for number := range authors {
			a.all[number].Generation++
		}
		edits := second%60 == 30
		if edits {
			a.put(quiet(second/60), 10, 200)
			a.put("hand", 10, 20)
		}
		names := a.reconcile(time.Second)
		if edits && (!slices.Contains(names, quiet(second/60)) || !slices.Contains(names, "hand")) {
			t.Errorf("edits of those who change little wait in second %d", second)
		}
		read += len(names)
	}
	each := a.r.readings[types.UID(name(0))].weight.Bytes
	if most := allFree + seconds*newPerSecond + 2*authors*each; read*each > most || read*each < most/4 {
		t.Errorf("%d KiB were read in %d s, want at most %d", read*each>>10, seconds, most>>10)
	}
}

// Red when a catalogue for which there was no room comes back as a new one: what its author owes is to count.
func TestWhatIsWholeAgainIsAnEdit(t *testing.T) {
	t.Parallel()
	a := newAuthored(t)
	a.r.master = &Master{Held: budget.New[v1.AddonCatalogue](catalogue.Budget("platform"))}
	stub := func(object *v1.AddonCatalogue) {
		object.Annotations = map[string]string{v1.AnnotationStub: "1048576"}
		object.Spec.Addons = nil
	}
	a.put("known", 10, 1<<10)
	a.put("early", 10, 1<<10, stub)
	a.r.readings = nil
	a.reconcileAll(0)
	for _, name := range []string{"known", "early"} {
		a.put(name, 10, 1<<10, stub)
		a.reconcileAll(time.Second)
		if found := a.r.readings[types.UID(name)]; !found.isHeld() || found.reason != v1.ReasonTooLarge || a.due != spaceRecheck {
			t.Errorf("a stub of %s is not held: %s, next pass in %s", name, found.reason, a.due)
		}
		a.put(name, 10, 1<<10)
		a.reconcileAll(time.Second)
		if payer := a.r.readings[types.UID(name)].payer; payer.author != name {
			t.Errorf("%s is paid by %q", name, payer.author)
		}
	}
	a.put("late", 10, 1<<10, stub)
	a.reconcileAll(0)
	a.put("late", 10, 1<<10)
	a.reconcileAll(0)
	if payer := a.r.readings["late"].payer; payer != newcomers {
		t.Errorf("one that was never read is paid by %q", payer.author)
	}
}
