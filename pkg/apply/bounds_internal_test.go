package apply

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// processor is the processor time that the process spends on a piece of work, the least of some tries: others want the machine too.
func processor(do func()) time.Duration {
	least := time.Duration(1 << 62)
	for range 5 {
		before := spent()
		do()
		least = min(least, spent()-before)
	}
	return least
}

func spent() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// expectShare fails if the second piece of work costs more than so many times the first.
func expectShare(t *testing.T, most float64, first, second func()) {
	t.Helper()
	small, large := processor(first), processor(second)
	if share := float64(large) / float64(max(small, time.Microsecond)); share > most {
		t.Errorf("%s against %s: %.1f times the work, expected at most %.1f", large, small, share, most)
	}
}

// disordered is a field set of so many bytes whose fields are in no order.
func disordered(size int) []byte {
	var fields strings.Builder
	fields.WriteString(`{"f:x":{}`)
	numbers := rand.New(rand.NewSource(1))
	for fields.Len() < size {
		fmt.Fprintf(&fields, `,"f:%08x":{}`, numbers.Uint32())
	}
	fields.WriteString("}")
	return []byte(fields.String())
}

func managedBy(manager, subresource string, fields []byte) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(string(fields)),
	}
}

// Red when a field set is read into a sorted set field by field, in whatever order they come.
func TestFieldSetsInNoOrderCostWhatTheirSizeIs(t *testing.T) {
	small, large := disordered(1<<18), disordered(1<<20)
	expectShare(t, 7, func() { parseFields(small) }, func() { parseFields(large) })
	searched := func(fields []byte) func() { return func() { hasField(fields, replicasPath) } }
	expectShare(t, 7, searched(small), searched(large))
	scaled := func(fields []byte) func() {
		return func() { isScaled([]metav1.ManagedFieldsEntry{managedBy("m", "scale", fields)}) }
	}
	expectShare(t, 1, searched(small), scaled(large)) // no autoscaler owns as much
	compared := func(live []byte) func() { return func() { lostFields([]byte(`{"f:x":{}}`), live, false) } }
	expectShare(t, 1, compared(disordered(liveSurplus)), compared(large)) // nor do we
}

// Red when all field sets are read anew for each field in conflict.
func TestConflictsReadEachFieldSetOnce(t *testing.T) {
	managed := []metav1.ManagedFieldsEntry{managedBy("m", "", disordered(1<<18))}
	settle := func(count int) func() {
		return func() {
			var fields []string
			for i := range count {
				fields = append(fields, fmt.Sprintf(".f%d", i))
			}
			w := &writer{owner: Owner{Installation: "x"}, adopt: true}
			live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ManagedFields: managed}}
			if !w.settleFields(&item{object: withValues(1)}, live, fields, &attempt{}) {
				t.Fatal("what adopts takes fields over")
			}
		}
	}
	expectShare(t, 4, settle(1), settle(40))
}

// Red when a refusal's causes are compared with one another, or all put into a message.
func TestCausesWithoutEndAreNotAllNamed(t *testing.T) {
	refusal := func(count int) error {
		err := apierrors.NewInvalid(schema.GroupKind{}, "x", nil)
		for i := range count {
			err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
				Type: metav1.CauseTypeFieldValueInvalid, Field: fmt.Sprintf(".f%d", i),
			})
		}
		return err
	}
	few, many := refusal(1000), refusal(40_000)
	it := &item{object: withValues(1)}
	for what, say := range map[string]func(error) string{"fields": fieldsOf, "problem": func(err error) string { return problemOf(it.object, err) }} {
		atFew := testing.AllocsPerRun(3, func() { say(few) })
		if atMany := testing.AllocsPerRun(3, func() { say(many) }); atMany > 2*atFew {
			t.Errorf("%s: %.0f allocations for 40,000 causes, %.0f for 1000", what, atMany, atFew)
		}
		if text := say(many); len(text) > 2*wordLimit || !strings.Contains(text, ".f0") {
			t.Errorf("%s: says %q", what, text)
		}
	}
}

// Red when a conflict is believed that is about more fields than were sent.
func TestConflictsNameNoMoreFieldsThanWereSent(t *testing.T) {
	it := &item{object: withValues(3)}
	fields := make([]string, 20)
	var misbehaved *MisbehavesError
	if err := checkConflicts(it, fields); !errors.As(err, &misbehaved) {
		t.Errorf("20 conflicts about an object of 10 values: %v", err)
	}
	if err := checkConflicts(it, fields[:3]); err != nil {
		t.Errorf("3 conflicts: %v", err)
	}
}

// withValues is an object with so many values, which all begin alike.
func withValues(count int) *unstructured.Unstructured {
	data := map[string]any{}
	for i := range count {
		data[fmt.Sprintf("k%d", i)] = fmt.Sprintf("aaaaaa%04x", i)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}, "data": data,
	}}
}

// Red when a text is looked through once for each value, or whole however long it is.
func TestMasksCostWhatTheValuesAre(t *testing.T) {
	say := func(values, text int, pattern string) func() {
		object, said := withValues(values).Object, strings.Repeat(pattern, text/len(pattern))
		return func() { maskValues(said, object) }
	}
	for _, pattern := range []string{"x", "a", "aaaaab"} {
		expectShare(t, 3, say(500, 1<<16, pattern), say(500, 1<<24, pattern))
		expectShare(t, 7, say(2000, 1<<16, pattern), say(8000, 1<<16, pattern))
	}
}

// Red when a value shows because the text was cut in it, because another stands over it, or because characters that are not
// shown stood in it.
func TestMasksHideValuesWhereverTheyStand(t *testing.T) {
	const secret = "Kq7-Zw3-Pm9-Xt5-Lb1"
	object := withValues(2)
	object.Object["data"] = map[string]any{"a": secret, "b": "says-Kq7-Zw3", "c": "Xt5-Lb1-and-more", "d": "line one\n" + secret + "\nline"}
	texts := map[string]string{
		"whole": "refused: " + secret + " it is", "overlapping": "says-" + secret + "-and-more",
		"between what is not shown": "refused: " + strings.Join(strings.Split(secret, ""), "\u200b"),
		"twice":                     secret + secret,
	}
	for shift := range len(secret) + 1 {
		texts[fmt.Sprintf("cut at %d", shift)] = strings.Repeat("\u200b", (maskedLimit-shift)/3) +
			strings.Repeat(".", (maskedLimit-shift)%3) + secret + strings.Repeat(" more", 9)
	}
	for why, text := range texts {
		said := maskValues(text, object.Object)
		for at := 0; at+4 <= len(secret); at++ {
			if strings.Contains(said, secret[at:at+4]) {
				t.Errorf("%s: %q shows %q", why, said, secret[at:at+4])
				break
			}
		}
	}
	if said := maskValues("it is too long", object.Object); said != "it is too long" {
		t.Errorf("a text without values came out as %q", said)
	}
}

// Red, in the order of the cases, when tokens may come again, when they may grow, when items are not counted, when pages are not.
func TestListsThatDoNotEndAreEnded(t *testing.T) {
	for _, test := range []struct {
		why  string
		page func(number int) aPage
		most int
	}{
		{"the same token again", func(number int) aPage { return aPage{items: 1, next: fmt.Sprint("token ", number%3)} }, 4},
		{"a token that grows", func(number int) aPage { return aPage{items: 1, next: strings.Repeat("t", 1<<number)} }, 14},
		{"too large items", func(number int) aPage { return aPage{items: 1, next: fmt.Sprint(number), fields: 100 << 20} }, 3},
		{"too many items", func(number int) aPage { return aPage{items: 30_000, next: fmt.Sprint(number)} }, 4},
		{"too many pages", func(number int) aPage { return aPage{items: 0, next: fmt.Sprint(number)} }, listTotals.Calls},
	} {
		t.Run(test.why, func(t *testing.T) {
			asked := 0
			err := eachPage(t.Context(), "", func(ctx context.Context, _ metav1.ListOptions) (aPage, error) {
				if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > listTotals.Time {
					t.Fatal("the list as a whole has no deadline")
				}
				asked++
				return test.page(asked), nil
			})
			if !isMisbehaviour(err) || asked > test.most {
				t.Errorf("after %d pages, at most %d: %v", asked, test.most, err)
			}
		})
	}
}

// Red when a page's failure is told for the end of the caller's own context.
func TestAListEndsWithItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	err := eachPage(ctx, "", func(context.Context, metav1.ListOptions) (aPage, error) {
		asked++
		cancel()
		return aPage{items: 1, next: fmt.Sprint(asked)}, nil
	})
	if !errors.Is(err, context.Canceled) || asked != 1 {
		t.Errorf("after %d pages: %v", asked, err)
	}
}

// Red when calls that are under way in parallel are followed by others after the context has ended.
func TestParallelCallsEndWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	called := make(chan int, 100)
	err := each(ctx, make([]int, 100), func(context.Context, int) error { called <- 1; return nil })
	if !errors.Is(err, context.Canceled) || len(called) > 0 {
		t.Errorf("%d calls were made: %v", len(called), err)
	}
}

// Red, in the order of the cases, when a field set's size is not compared with what was sent, or when it is not looked at.
func TestFieldsAreKeptUpToTheSizeOfWhatWasSent(t *testing.T) {
	const ours = "addon-installation/x"
	for _, test := range []struct {
		why, fields string
		sent        int
		ok          bool
	}{
		{"larger than what was sent can have", string(disordered(10_000)), 300, false},
		{"no JSON", `{"f:x":`, 300, false},
		{"a set of digits, which has the most", `{"f:data":{` + strings.Repeat(`"v:1":{},`, 49) + `"v:1":{}}}`, 100, true},
		{"none", "", 300, true},
	} {
		managed := managedBy(ours, "", []byte(test.fields))
		managed.Operation = metav1.ManagedFieldsOperationApply
		fields, ok := trueFields([]metav1.ManagedFieldsEntry{managed}, ours, test.sent)
		if ok != test.ok || ok && string(fields) != test.fields {
			t.Errorf("%s: %v, %d bytes", test.why, ok, len(fields))
		}
	}
}

// FuzzFieldSets: what the library reads as a field set, in whatever order, we read as the same; and a search finds what is in it.
func FuzzFieldSets(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `{"f:a":{},"f:b":{".":{},"f:c":{}}}`, `{"f:b":{},"f:a":{},"f:b":{"f:z":{},"f:y":{}}}`, `{"f:spec":{"f:replicas":{}}}`,
		`{"k:{\"name\":\"x\",\"port\":1}":{".":{}},"v:\"s\"":{},"i:3":{}}`, `{"x:new":{"f:a":{}},"f:a":null}`, `{"f:a":{".":{}},"f:a":{}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		ours, err := readFields(raw)
		if err != nil {
			return
		}
		theirs := &fieldpath.Set{}
		if theirs.FromJSON(strings.NewReader(string(raw))) != nil || len(raw) == 0 {
			return
		}
		if !ours.Equals(theirs) {
			t.Fatalf("%q is %s, read as %s", raw, theirs, ours)
		}
		var texts []string
		for path := range ours.All() {
			texts = append(texts, path.String())
		}
		slices.Sort(texts)
		texts = slices.Compact(texts)
		found := searchFields(raw, texts)
		slices.Sort(found)
		if found = slices.Compact(found); !slices.Equal(found, texts) {
			t.Fatalf("%q: found %q, has %q", raw, found, texts)
		}
	})
}
