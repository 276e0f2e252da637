package expect

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Red when the time is not waited for, or what came before an error counts.
func TestLastsCountsFromTheLastError(t *testing.T) {
	const during = 200 * time.Millisecond
	looks, broke := 0, time.Time{}
	Lasts(t, Patience, during, func() error {
		if looks++; looks == 1 || looks == 4 {
			broke = time.Now()
			return errors.New("broken")
		}
		return nil
	})
	if took := time.Since(broke); looks < 5 || took < during {
		t.Errorf("after %d looks and %s, it was taken to last", looks, took)
	}
}

// recorder is a test that notes how it would end.
type recorder struct {
	testing.TB
	ended string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, arguments ...any) {
	r.ended = fmt.Sprintf(format, arguments...)
}

// Red when a change that the API server holds to be wrong is tried for a minute, or one that may go well later ends the test.
func TestAChangeIsTriedAgainWhereThatMayHelp(t *testing.T) {
	of, kind := schema.GroupResource{Resource: "things"}, schema.GroupKind{Kind: "Thing"}
	for _, test := range []struct {
		err  error
		ends bool
	}{
		{apierrors.NewInvalid(kind, "one", nil), true}, {apierrors.NewBadRequest("no"), true}, {apierrors.NewRequestEntityTooLargeError("no"), true},
		{apierrors.NewConflict(of, "one", nil), false}, {apierrors.NewForbidden(of, "one", nil), false}, {errors.New("no answer"), false}, {nil, false},
	} {
		r := &recorder{TB: t}
		got := unlessWrong(r, "updating", &kubermaticv1.AddonSet{}, test.err)
		if !errors.Is(got, test.err) || (r.ended != "") != test.ends {
			t.Errorf("%v: got %v, and the test ends with %q", test.err, got, r.ended)
		}
	}
}

// Red when a write is given up after some conflicts, or tried again after another error.
func TestConflictsAreOutlasted(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "things"}, "one", nil)
	tries := 0
	err := PastConflicts(t.Context(), func() error {
		if tries++; tries < 20 {
			return fmt.Errorf("writing it: %w", conflict)
		}
		return errors.New("refused")
	})
	if err == nil || err.Error() != "refused" || tries != 20 {
		t.Errorf("after %d tries: %v", tries, err)
	}
}

func TestCondition(t *testing.T) {
	object := &kubermaticv1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	object.Status.Conditions = []metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", Message: "1 of 2 are ready", ObservedGeneration: 2},
		{Type: "Healthy", Status: metav1.ConditionTrue, Reason: "Healthy", ObservedGeneration: 1},
		{Type: "Drifted", Status: metav1.ConditionFalse, Reason: "NoDrift"},
	}
	for _, test := range []struct {
		why, kind, status, reason string
		holds                     bool
		words                     []string
	}{
		{"type, status and reason fit", "Ready", "True", "Ready", true, nil},
		{"no reason is any reason", "Ready", "True", "", true, nil},
		{"all words are said", "Ready", "True", "Ready", true, []string{"of 2", "1"}},
		{"a word is not said", "Ready", "True", "Ready", false, []string{"1", "of 3"}},
		{"another status", "Ready", "False", "", false, nil},
		{"another reason", "Ready", "True", "Paused", false, nil},
		{"of an older generation", "Healthy", "True", "", false, nil},
		{"conditions of other kinds may lack a generation", "Drifted", "False", "", true, nil},
		{"no such type", "Applied", "True", "", false, nil},
	} {
		err := Condition(object, test.kind, test.status, test.reason, test.words...)
		var missing *ConditionError
		if test.holds != (err == nil) || (err != nil && !errors.As(err, &missing)) {
			t.Errorf("%s: Condition(%s, %s, %s) = %v", test.why, test.kind, test.status, test.reason, err)
		}
	}
}
