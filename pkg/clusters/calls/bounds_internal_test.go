package calls

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

	"github.com/trellis-addons/trellis/pkg/clusters/remote"
	"github.com/trellis-addons/trellis/test/cost"
)

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
	say := func(err error) string { return ProblemOf(object, err) }
	atFew := testing.AllocsPerRun(3, func() { say(few) })
	if atMany := testing.AllocsPerRun(3, func() { say(many) }); atMany > 2*atFew {
		t.Errorf("%.0f allocations for 40,000 causes, %.0f for 1000", atMany, atFew)
	}
	if text := say(many); len(text) > problemLimit || !strings.Contains(text, ".f0") {
		t.Errorf("it says %q", text)
	}
}

// Red when a text is read through once for each value, or whole however long it is.
func TestMasksCostWhatTheValuesAre(t *testing.T) {
	say := func(values, text int, pattern string) func() {
		object, said := cost.ObjectWithValues(values).Object, strings.Repeat(pattern, text/len(pattern))
		return func() { maskValues(said, object) }
	}
	for _, pattern := range []string{"x", "a", "aaaaab"} {
		cost.Share(t, 3, say(500, 1<<16, pattern), say(500, 1<<24, pattern))
		cost.Share(t, 80, say(1000, 1<<16, pattern), say(16000, 1<<16, pattern)) // 256 if each pair counted
	}
}

// Red when a value shows because the text was cut in it, because another stands over it, or because
// characters that are not shown stood in it.
func TestMasksHideValuesEverywhere(t *testing.T) {
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

// Red, in the order of the cases, when tokens may come again, when they may grow, when items are
// not counted, when pages are not.
func TestListsThatDoNotEndAreEnded(t *testing.T) {
	for _, test := range []struct {
		why  string
		page func(number int) Page
		most int
	}{
		{"the same token again", func(number int) Page { return Page{Items: 1, Next: fmt.Sprint("token ", number%3)} }, 4},
		{"a token that grows", func(number int) Page { return Page{Items: 1, Next: strings.Repeat("t", 1<<number)} }, 14},
		{"too large items", func(number int) Page { return Page{Items: 1, Next: fmt.Sprint(number), Fields: 100 << 20} }, 3},
		{"too many items", func(number int) Page { return Page{Items: 30_000, Next: fmt.Sprint(number)} }, 4},
		{"too many pages", func(number int) Page { return Page{Items: 0, Next: fmt.Sprint(number)} }, remote.ListTotals.Calls},
	} {
		t.Run(test.why, func(t *testing.T) {
			asked := 0
			err := EachPage(t.Context(), "", func(ctx context.Context, _ metav1.ListOptions) (Page, error) {
				if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > remote.ListTotals.Time {
					t.Fatal("the list as a whole has no deadline")
				}
				asked++
				return test.page(asked), nil
			})
			if !IsMisbehaviour(err) || asked > test.most {
				t.Errorf("after %d pages, at most %d: %v", asked, test.most, err)
			}
		})
	}
}

// Red when a page's failure is reported for the end of the caller's own context.
func TestAListEndsWithItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	err := EachPage(ctx, "", func(context.Context, metav1.ListOptions) (Page, error) {
		asked++
		cancel()
		return Page{Items: 1, Next: fmt.Sprint(asked)}, nil
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
	err := Each(ctx, make([]int, 100), func(context.Context, int) error { called <- 1; return nil })
	if !errors.Is(err, context.Canceled) || len(called) > 0 {
		t.Errorf("%d calls were made: %v", len(called), err)
	}
}
