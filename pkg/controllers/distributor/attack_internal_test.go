package distributor

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

func heapNow() int64 {
	runtime.GC()
	runtime.GC()
	var found runtime.MemStats
	runtime.ReadMemStats(&found)
	return int64(found.HeapAlloc) >> 20
}

// A reading's spec points into the array of the list that it was read from.
func TestAttackReadingsPinLists(t *testing.T) {
	for _, how := range []string{"edits that wait", "new versions of the same generation, as after a write of the status"} {
		a := newAuthored(t)
		for at := range 8 {
			a.put(fmt.Sprintf("large-%d", at), 2, 1<<10)
		}
		for at := range 40 {
			a.put(fmt.Sprintf("small-%d", at), 1, 1)
		}
		a.pass(0)
		before := heapNow()
		for at := range 40 {
			for number := range 8 {
				name := fmt.Sprintf("large-%d", number)
				if how == "edits that wait" {
					a.put(name, 2, 1<<10)
					continue
				}
				for i := range a.all {
					if a.all[i].Name == name {
						a.all[i].Spec.Addons = []v1.Addon{*a.all[i].Spec.Addons[0].DeepCopy()}
						for j := range a.all[i].Spec.Addons[0].Versions { // as decoded again
							version := &a.all[i].Spec.Addons[0].Versions[j]
							version.ValuesTemplate = strings.Clone(version.ValuesTemplate)
						}
					}
				}
			}
			a.put(fmt.Sprintf("small-%d", at), 1, 1)
			a.pass(10 * time.Millisecond)
		}
		t.Logf("%s: 8 MiB of catalogues in the cache, heap grew by %d MiB", how, heapNow()-before)
		for _, found := range a.r.readings { // the cure
			if found.spec != nil {
				own := *found.spec
				found.spec = &own
			}
		}
		t.Logf("%s: with specs of their own %d MiB", how, heapNow()-before)
		runtime.KeepAlive(a)
	}
}

// An owner takes an add-on out and puts it back; the second edit waits for more than ten minutes.
func TestAttackOwnerLosesWhileItWaits(t *testing.T) {
	a := newAuthored(t)
	two := func(object *v1.AddonCatalogue) {
		object.Spec.Addons = append(object.Spec.Addons, *object.Spec.Addons[0].DeepCopy())
		object.Spec.Addons[1].Name, object.Spec.Addons[1].Versions = "web", object.Spec.Addons[1].Versions[:1]
	}
	a.put("victim", 100, 1<<10, two)
	a.put("hostile", 1, 1, func(object *v1.AddonCatalogue) {
		object.Spec.Addons[0].Name = "web"
		object.CreationTimestamp = metav1.NewTime(time.Unix(2_000_000, 0))
	})
	for at := range 7 {
		a.put(fmt.Sprintf("loop-%d", at), 10, 1<<10)
	}
	a.r.owners = owners{stored: catalogue.Owners{"web": {"victim"}, "victim": {"victim"}}, ignored: map[string]bool{}}
	steps := func(after time.Duration) string {
		a.clock.Step(after)
		for at := range 7 {
			a.put(fmt.Sprintf("loop-%d", at), 10, 1<<10)
		}
		f := &facts{}
		a.r.readAll(t.Context(), f, append([]v1.AddonCatalogue(nil), a.all...))
		for _, found := range f.readings {
			found.offer(nil)
		}
		if outcome := a.r.own(t.Context(), f); outcome != nil {
			t.Fatal(outcome)
		}
		merged := catalogue.Merge(sourcesOf(f.readings), f.claims)
		a.r.owners.stored = merged.Owners
		return strings.Join(merged.Owners["web"], " ")
	}
	t.Log("owner of web:", steps(0))
	a.put("victim", 100, 1<<10, two)
	t.Log("a usual edit:", steps(time.Hour))
	a.put("victim", 100, 1<<10)
	t.Log("web is taken out, by a slip:", steps(30*time.Second))
	var at time.Duration
	for ; a.r.readings["victim"].waits != "" && at < time.Hour; at += 10 * time.Second {
		steps(10 * time.Second)
	}
	t.Logf("the slip was read after %s", at)
	a.put("victim", 100, 1<<10, two)
	for at = 0; at < time.Hour; at += 10 * time.Second {
		owner := steps(10 * time.Second)
		if owner != "victim" || a.r.readings["victim"].waits == "" {
			t.Logf("after %s owner of web is %q, the victim's edit waits: %t", at, owner, a.r.readings["victim"].waits != "")
			break
		}
	}
}

// What new catalogues of one flood cost the next honest one.
func TestAttackNewOnesWait(t *testing.T) {
	a := newAuthored(t)
	a.put("first", 1, 1)
	a.pass(0)
	weight := 0
	for at := range 900 {
		a.put(fmt.Sprintf("flood-%d", at), 1, 1, func(object *v1.AddonCatalogue) {
			object.Spec.Addons = nil
			for number := range 512 {
				object.Spec.Addons = append(object.Spec.Addons, v1.Addon{Name: v1.AddonName(fmt.Sprintf("x-%d-%d", at, number)),
					Versions: []v1.AddonVersion{{Version: "1.0.0"}}})
			}
		})
		weight += catalogue.Weigh(&a.all[len(a.all)-1].Spec).Bytes
	}
	a.pass(time.Second)
	a.put("honest", 1, 1)
	a.pass(time.Second)
	t.Logf("flood of %d MiB by weight: an honest new catalogue waits %s", weight>>20, a.due)
}

// Many authors: what is read in all.
func TestAttackManyAuthors(t *testing.T) {
	for _, authors := range []int{8, 100, 500} {
		a := newAuthored(t)
		for at := range authors {
			a.put(fmt.Sprintf("a-%d", at), 1, 64)
		}
		a.pass(0)
		bytes, count := 0, 0
		for range 300 {
			for at := range authors {
				a.put(fmt.Sprintf("a-%d", at), 1, 64)
			}
			for _, name := range a.pass(time.Second) {
				bytes += a.r.readings[types.UID(name)].weight.Bytes
				count++
			}
		}
		t.Logf("%d authors: %d edits, %d KiB/s", authors, count, bytes/300>>10)
	}
}

// A commit that takes a vulnerable version out, after a large one.
func TestAttackUrgentOfALargeRepository(t *testing.T) {
	for _, others := range []int{0, 7} {
		a := newAuthored(t)
		for at := range 16 {
			a.put(fmt.Sprintf("r-%d", at), 10, 1<<10, generatedFrom("r"))
		}
		for at := range others {
			a.put(fmt.Sprintf("loop-%d", at), 10, 8<<10)
		}
		a.pass(0)
		for at := range 16 {
			a.put(fmt.Sprintf("r-%d", at), 10, 1<<10, generatedFrom("r"))
		}
		for at := range others {
			a.put(fmt.Sprintf("loop-%d", at), 10, 8<<10)
		}
		a.pass(time.Second)
		a.put("r-0", 9, 1<<10, generatedFrom("r"))
		a.pass(time.Minute)
		t.Logf("%d others owe: taking a version out waits %s", others, a.due)
	}
}

// A catalogue in git becomes a plain one, or is made again, while new ones wait.
func TestAttackStubReadingIsNew(t *testing.T) {
	a := newAuthored(t)
	a.put("x", 10, 1<<10)
	a.pass(0)
	read := 0
	for range 60 { // an author makes its catalogue one in git and back
		a.put("x", 10, 1<<10, func(object *v1.AddonCatalogue) {
			object.Spec.Addons, object.Spec.Git = nil, &v1.CatalogueGit{}
		})
		a.pass(time.Second)
		a.put("x", 10, 1<<10)
		read += len(a.pass(time.Second))
	}
	t.Logf("by git and back: %d edits of 1 MiB read in 2 minutes", read)
}
