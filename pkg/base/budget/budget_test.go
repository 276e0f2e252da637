package budget

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/wait"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

type installations = Budget[v1.AddonInstallation, *v1.AddonInstallation]

func of(most int64) *installations {
	return New[v1.AddonInstallation](Kind[v1.AddonInstallation]{
		Most: most, Namespaced: true,
		IsAlwaysWhole: func(one *v1.AddonInstallation, bytes int64) bool { return one.Spec.CoreAddon && bytes <= 64<<10 },
		Strip:         func(one *v1.AddonInstallation) { one.Spec.ValuesTemplate = "" },
	})
}

// object as a watch brings it, in memory of its own.
func object(namespace, name string, bytes int) *v1.AddonInstallation {
	made := &v1.AddonInstallation{}
	made.Namespace, made.Name, made.UID = namespace, name, types.UID(namespace+"/"+name)
	made.Spec.ValuesTemplate = strings.Repeat("x", bytes)
	return made
}

func put(t *testing.T, into *installations, one *v1.AddonInstallation) *v1.AddonInstallation {
	t.Helper()
	found, err := into.Transform(one)
	if err != nil {
		t.Fatal(err)
	}
	return found.(*v1.AddonInstallation)
}

// fill a namespace with objects of a size, and give those that are whole.
func fill(t *testing.T, into *installations, namespace string, count, bytes int) (all []*v1.AddonInstallation, whole int) {
	t.Helper()
	for at := range count {
		one := put(t, into, object(namespace, fmt.Sprintf("%d-%d", bytes, at), bytes))
		if !IsStub(one) {
			whole++
		}
		all = append(all, one)
	}
	return all, whole
}

// TestAFloodIsHeldAsStubs turns red when a flood takes more than the budget, when one namespace takes what others need, when what was
// there before becomes a stub, or when a large flood leaves no room for what is small.
func TestAFloodIsHeldAsStubs(t *testing.T) {
	t.Parallel()
	const most = 16 << 20
	into := of(most)
	honest, _ := fill(t, into, "honest", 20, 50<<10)
	large, whole := fill(t, into, "flood", 100, 100<<10)
	if whole == 0 || into.namespaces["flood"].Bytes > most/3 || into.total > most {
		t.Errorf("%d whole, %d bytes of the flood, %d in all", whole, into.namespaces["flood"].Bytes, into.total)
	}
	small, whole := fill(t, into, "flood", 20, 1<<10)
	if whole != 20 {
		t.Errorf("behind large ones, %d small ones are whole", whole)
	}
	late, whole := fill(t, into, "late", 20, 50<<10)
	if whole != 20 {
		t.Errorf("of another namespace %d are whole", whole)
	}
	for _, one := range honest {
		again := object("honest", one.Name, 50<<10)
		again.Generation++
		if IsStub(put(t, into, again)) {
			t.Errorf("%s became a stub", one.Name)
		}
	}
	runtime.KeepAlive([]any{honest, large, small, late})
}

// TestNoNamespacesTakeTheSpaceOfOthers turns red when some that take all that they can leave no room for another one; or when what can't be
// refused, such as the platform's and stubs, takes the room that each namespace has.
func TestNoNamespacesTakeTheSpaceOfOthers(t *testing.T) {
	t.Parallel()
	const most = 64 << 20
	for _, floods := range []int{1, 2, 4} {
		into := of(most)
		var all []any
		for flood := range floods {
			for bytes := 1 << 20; bytes >= 1<<10; bytes /= 2 {
				made, _ := fill(t, into, fmt.Sprintf("flood-%d", flood), 20, bytes)
				all = append(all, made)
			}
		}
		if has := into.namespaces["flood-0"].Bytes; has > most*35/100 || has < most/4 {
			t.Errorf("%d namespaces: the first has %d KiB of %d", floods, has>>10, most>>10)
		}
		honest, whole := fill(t, into, "honest", 100, 20<<10)
		if whole != 100 {
			t.Errorf("%d namespaces: %d of 100 objects of another one are whole", floods, whole)
		}
		platform := object("platform", "", 60<<10)
		for at := range most / (60 << 10) {
			one := platform.DeepCopy()
			one.Name, one.UID, one.Spec.CoreAddon = fmt.Sprint(at), types.UID(fmt.Sprint(at)), true
			all = append(all, put(t, into, one))
		}
		late, whole := fill(t, into, "late", 5, 1<<10)
		if into.total < most || whole != 5 {
			t.Errorf("%d namespaces: beyond the budget, with %d KiB, %d of 5 small objects of another one are whole", floods, into.total>>10, whole)
		}
		runtime.KeepAlive([]any{all, honest, late})
	}
}

// TestWhatIsWholeStaysWholeInAFullBudget turns red when an object becomes a stub although it takes no more than before, when one that
// grows into a flood stays whole, or when the platform's gives way.
func TestWhatIsWholeStaysWholeInAFullBudget(t *testing.T) {
	t.Parallel()
	into := of(4 << 20)
	one := put(t, into, object("a", "one", 100<<10))
	var all []any
	for bytes := 200 << 10; bytes >= 16; bytes /= 2 {
		flood, _ := fill(t, into, "a", 400, bytes)
		all = append(all, flood)
	}
	again := object("a", "one", 100<<10)
	again.Status.Conditions = make([]metav1.Condition, 100) // as a manager reports on it
	if again = put(t, into, again); IsStub(again) {
		t.Error("it became a stub, and no user made it larger")
	}
	grown := put(t, into, object("a", "one", 200<<10))
	if size, isStub := Size(grown); !isStub || size < 200<<10 || grown.Spec.ValuesTemplate != "" {
		t.Errorf("what grew is whole: %d bytes", size)
	}
	core := object("a", "core", 60<<10)
	core.Spec.CoreAddon = true
	if IsStub(put(t, into, core)) {
		t.Error("one of the platform is a stub")
	}
	large := object("a", "large-core", 200<<10)
	large.Spec.CoreAddon = true
	if !IsStub(put(t, into, large)) {
		t.Error("a flood in an installation of the platform is whole")
	}
	runtime.KeepAlive([]any{all, one, again, grown})
}

// TestAStubKeepsOurOwnMarks turns red when a stub has labels or annotations of others, or many of ours, lacks what controllers go by, such as
// a long list of names, or is whole once it passes again; or when an annotation that a user wrote makes an object a stub, or is believed.
func TestAStubKeepsOurOwnMarks(t *testing.T) {
	t.Parallel()
	into := of(1 << 20)
	one := object("a", "one", 512<<10)
	one.Finalizers, one.Generation, one.ResourceVersion = []string{"x/y"}, 7, "11"
	one.Labels = map[string]string{v1.LabelSet: "tools", "x": "y"}
	one.Annotations = map[string]string{
		v1.AnnotationDigest: "d", "x": "y", v1.AnnotationStub: "1", v1.AnnotationTakeOver: strings.Repeat("web,", 2<<10),
	}
	for at := range 100 {
		one.Annotations[fmt.Sprintf("%sa%d", v1.Prefix, at)] = strings.Repeat("x", 9<<10)
	}
	found := put(t, into, one)
	sum := 0
	for key, value := range found.Annotations {
		sum += len(key) + len(value)
	}
	if size, _ := Size(found); size < 512<<10 || found.Annotations[v1.AnnotationDigest] != "d" || found.Annotations["x"] != "" ||
		sum > mostMarks+100 || len(found.Annotations[v1.AnnotationTakeOver]) != 8<<10 || len(found.Labels) != 1 || found.Labels[v1.LabelSet] != "tools" {
		t.Errorf("%d bytes, labels %v, %d bytes of annotations", size, found.Labels, sum)
	}
	if len(found.Finalizers) != 1 || found.Generation != 7 || found.ResourceVersion != "11" {
		t.Errorf("%+v", found.ObjectMeta)
	}
	put(t, into, found) // as when a list was streamed in
	if size, isStub := Size(found); !isStub || size < 512<<10 || into.known[found.UID].copies != 1 {
		t.Errorf("the same object is judged twice: %d bytes, a stub %t, %d copies", size, isStub, into.known[found.UID].copies)
	}
	forged := object("a", "forged", 1)
	forged.Annotations = map[string]string{v1.AnnotationStub: "1"}
	if forged = put(t, into, forged); IsStub(forged) {
		t.Error("an annotation that a user wrote makes a stub")
	}
	into.Kind.ReadIn = "a"
	foreign := put(t, into, object("foreign", "one", 1))
	if !IsStub(foreign) || into.HasSpace(foreign) {
		t.Error("an object whose content nothing reads is held whole, or is to be")
	}
	runtime.KeepAlive([]any{found, forged, foreign})
}

// TestAStubKeepsFewReferences turns red when a stub keeps references to owners, or finalizers, of any length, which no API server bounds; or
// lacks the finalizer that a controller takes off.
func TestAStubKeepsFewReferences(t *testing.T) {
	t.Parallel()
	into := of(1 << 20)
	made := func(name string, length int) *v1.AddonInstallation {
		one := object("a", name, 512<<10)
		one.OwnerReferences = []metav1.OwnerReference{{Name: strings.Repeat("x", length)}}
		one.Finalizers = []string{v1.FinalizerCleanupInstallation, strings.Repeat("x", length), v1.FinalizerCleanupInstallation}
		return put(t, into, one)
	}
	if one := made("short", 100); len(one.OwnerReferences) != 1 || len(one.Finalizers) != 3 {
		t.Errorf("references %v, finalizers %v", one.OwnerReferences, one.Finalizers)
	}
	if one := made("long", 1<<20); one.OwnerReferences != nil || !slices.Equal(one.Finalizers, []string{v1.FinalizerCleanupInstallation}) {
		t.Errorf("1 MiB of a name is kept, or %d finalizers", len(one.Finalizers))
	}
}

// TestSpaceReturnsWithWhatIsCollected turns red when bytes stay in the tally of what is in memory no more, such as objects that were
// deleted, former versions and lists that were not read to their end; or when there is no room again after that.
func TestSpaceReturnsWithWhatIsCollected(t *testing.T) {
	t.Parallel()
	into := of(8 << 20)
	put(t, into, object("a", "kept", 1<<10))
	flood, _ := fill(t, into, "a", 50, 200<<10)
	last := flood[len(flood)-1]
	if !IsStub(last) || into.HasSpace(last) {
		t.Error("there is room in a full budget")
	}
	for range 3 {
		fill(t, into, "a", 50, 200<<10) // again, as after the loss of a watch
	}
	kept := put(t, into, object("a", "kept", 2<<10))
	flood = nil
	collect(t, func() bool {
		into.mutex.Lock()
		defer into.mutex.Unlock()
		return len(into.known) == 2 && into.total == into.namespaces["a"].Bytes && into.total < 20<<10
	})
	if !into.HasSpace(last) {
		t.Error("there is no room for the last stub")
	}
	if whole := put(t, into, object("a", last.Name, 200<<10)); IsStub(whole) {
		t.Error("it is a stub still")
	}
	runtime.KeepAlive([]any{kept, last, flood})
}

func collect(t *testing.T, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		runtime.GC()
		return done(), nil
	})
	if err != nil {
		t.Fatal("bytes are in the tally of what is in memory no more")
	}
}

// TestTheTallyIsWhatMemoryHolds turns red when the tally is far from what objects take once they are decoded, of text or of many small
// parts.
func TestTheTallyIsWhatMemoryHolds(t *testing.T) {
	for what, text := range map[string][]byte{
		"text":   fmt.Appendf(nil, `{"spec":{"valuesTemplate":%q}}`, strings.Repeat("x", 60<<10)),
		"labels": fmt.Appendf(nil, `{"metadata":{"labels":{%s}}}`, members(2000, `"key-%d":"v%[1]d"`)),
		"rows":   fmt.Appendf(nil, `{"status":{"unhealthy":[%s]}}`, members(2000, `{"ref":"%d"}`)),
	} {
		const copies = 50
		held, sum := make([]*v1.AddonInstallation, copies), int64(0)
		before := heap()
		for at := range held {
			held[at] = &v1.AddonInstallation{}
			if err := json.Unmarshal(text, held[at]); err != nil {
				t.Fatal(err)
			}
			bytes, _ := sizeOf(held[at])
			sum += bytes
		}
		took := heap() - before
		if sum < took*6/10 || sum > took*2 {
			t.Errorf("%s: the tally has %d KiB of %d KiB", what, sum>>10, took>>10)
		}
		runtime.KeepAlive(held)
	}
}

func members(count int, form string) string {
	all := make([]string, count)
	for at := range all {
		all[at] = fmt.Sprintf(form, at)
	}
	return strings.Join(all, ",")
}

func heap() int64 {
	runtime.GC()
	var found runtime.MemStats
	runtime.ReadMemStats(&found)
	return int64(found.HeapAlloc)
}

// Each version of each installation is weighed. Red when that takes memory for each field of it, such as reflect's descriptions of them: these
// were hundreds of allocations for each change.
func TestWeighingTakesNoMemoryForEachField(t *testing.T) {
	one := object("cluster-a", "web", 100)
	one.Labels, one.Annotations = map[string]string{"a": "b", "c": "d", "e": "f"}, map[string]string{"g": "h"}
	for at := range 10 {
		one.Status.Conditions = append(one.Status.Conditions, metav1.Condition{Type: fmt.Sprint(at), Message: "well"})
	}
	if allocations := testing.AllocsPerRun(10, func() { sizeOf(one) }); allocations > 20 { // two for each label and annotation
		t.Errorf("weighing an installation with %d conditions takes %.0f allocations", len(one.Status.Conditions), allocations)
	}
}
