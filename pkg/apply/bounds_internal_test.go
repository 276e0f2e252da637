package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/test/cost"
)

// Red when all field sets are read anew for each field in conflict.
func TestConflictsReadEachFieldSetOnce(t *testing.T) {
	managed := []metav1.ManagedFieldsEntry{cost.ManagedBy("m", "", cost.DisorderedFields(1<<18))}
	settle := func(count int) func() {
		return func() {
			var fields []string
			for i := range count {
				fields = append(fields, fmt.Sprintf(".f%d", i))
			}
			w := &writer{owner: ownership.Owner{Installation: "x"}, adopt: true}
			live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ManagedFields: managed}}
			if !w.settleFields(&item{object: cost.ObjectWithValues(1)}, live, fields, &attempt{}) {
				t.Fatal("what adopts takes fields over")
			}
		}
	}
	cost.Share(t, 4, settle(1), settle(40))
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
	object := cost.ObjectWithValues(1)
	for what, say := range map[string]func(error) string{"fields": fieldsOf, "problem": func(err error) string { return problemOf(object, err) }} {
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
	it := &item{object: cost.ObjectWithValues(3)}
	fields := make([]string, 20)
	var misbehaved *MisbehavesError
	if err := checkConflicts(it, fields); !errors.As(err, &misbehaved) {
		t.Errorf("20 conflicts about an object of 10 values: %v", err)
	}
	if err := checkConflicts(it, fields[:3]); err != nil {
		t.Errorf("3 conflicts: %v", err)
	}
}

// Red when a text is looked through once for each value, or whole however long it is.
func TestMasksCostWhatTheValuesAre(t *testing.T) {
	say := func(values, text int, pattern string) func() {
		object, said := cost.ObjectWithValues(values).Object, strings.Repeat(pattern, text/len(pattern))
		return func() { maskValues(said, object) }
	}
	for _, pattern := range []string{"x", "a", "aaaaab"} {
		cost.Share(t, 3, say(500, 1<<16, pattern), say(500, 1<<24, pattern))
		cost.Share(t, 7, say(2000, 1<<16, pattern), say(8000, 1<<16, pattern))
	}
}

// Red when a value shows because the text was cut in it, because another stands over it, or because characters that are not
// shown stood in it.
func TestMasksHideValuesWhereverTheyStand(t *testing.T) {
	const secret = "Kq7-Zw3-Pm9-Xt5-Lb1"
	object := cost.ObjectWithValues(2)
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
