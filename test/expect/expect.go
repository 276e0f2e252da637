package expect

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patience is how long Object and Gone wait: long enough for a machine that is several times slower than usual. A test that passes never
// waits that long.
const Patience = 3 * time.Minute

const (
	interval = 25 * time.Millisecond
	// soonest and latest are the pauses between two looks of Eventually: an eighth of what was waited so far, since looks
	// cost processor time that what is waited for lacks.
	soonest, latest = 10 * time.Millisecond, 100 * time.Millisecond
)

// NoError ends the test by an error.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Eventually fails the test unless holds returns nil in time; it says what holds returned last.
func Eventually(t testing.TB, timeout time.Duration, holds func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	for begin := time.Now(); ; {
		last := holds()
		if last == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %v", timeout, last)
		case <-time.After(min(max(time.Since(begin)/8, soonest), latest)):
		}
	}
}

// Always fails the test when holds returns an error once during the time.
func Always(t testing.TB, during time.Duration, holds func() error) {
	t.Helper()
	var broken error
	err := wait.PollUntilContextTimeout(t.Context(), interval, during, true, func(context.Context) (bool, error) {
		broken = holds()
		return broken != nil, nil
	})
	if err == nil {
		t.Fatalf("did not stay so for %s: %v", during, broken)
	}
}

// Lasts waits until holds has returned nil for the time, without an error in between; it fails the test when that is not so in time.
func Lasts(t testing.TB, timeout, during time.Duration, holds func() error) {
	t.Helper()
	var since time.Time
	Eventually(t, timeout, func() error {
		if err := holds(); err != nil {
			since = time.Time{}
			return err
		}
		if since.IsZero() {
			since = time.Now()
		}
		if lasts := time.Since(since); lasts < during {
			return fmt.Errorf("it is so for %s only", lasts)
		}
		return nil
	})
}

// Never fails the test when happens returns true once during the time.
func Never(t testing.TB, during time.Duration, happens func() bool) {
	t.Helper()
	Always(t, during, func() error {
		if happens() {
			return fmt.Errorf("happened, against expectation")
		}
		return nil
	})
}

// Object reads the object of that namespace and name until holds returns nil, and returns it.
func Object[T client.Object](t testing.TB, reader client.Reader, object T, holds func(T) error) T {
	t.Helper()
	key := client.ObjectKeyFromObject(object)
	Eventually(t, Patience, func() error {
		if err := reader.Get(t.Context(), key, object); err != nil {
			return err
		}
		if err := holds(object); err != nil {
			return fmt.Errorf("%T %s: %w", object, key, err)
		}
		return nil
	})
	return object
}

// Gone waits until the object of that namespace and name is not found.
func Gone(t testing.TB, reader client.Reader, object client.Object) {
	t.Helper()
	key := client.ObjectKeyFromObject(object)
	Eventually(t, Patience, func() error {
		err := reader.Get(t.Context(), key, object)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return fmt.Errorf("%T %s still exists, finalizers %q", object, key, object.GetFinalizers())
	})
}

// ConditionError says that an object has not the condition that was asked for.
type ConditionError struct {
	// Want is the condition asked for, as type=status (reason), and the words.
	Want string
	// Got lists the conditions of the object, with messages.
	Got []string
}

func (e *ConditionError) Error() string {
	return fmt.Sprintf("want condition %s; got %s", e.Want, strings.Join(e.Got, "; "))
}

// HasCondition reads the object of that namespace and name until it has the condition, and returns it: see Is.
func HasCondition[T client.Object](t testing.TB, reader client.Reader, object T, is func(client.Object) error) T {
	t.Helper()
	return Object(t, reader, object, func(object T) error { return is(object) })
}

// Is asks Condition for a condition of that type, status and reason with all of these words.
func Is(kind, status, reason string, words ...string) func(client.Object) error {
	return func(object client.Object) error { return Condition(object, kind, status, reason, words...) }
}

// Condition returns a ConditionError unless status.conditions of the object, of any kind, has one of that type, status and
// reason with all of these words in its message; reason "" is any. A condition of an older generation than the object's
// does not count.
func Condition(object client.Object, kind, status, reason string, words ...string) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return fmt.Errorf("reading %T: %w", object, err)
	}
	conditions, _, err := unstructured.NestedSlice(content, "status", "conditions")
	if err != nil {
		return fmt.Errorf("reading the conditions of %T: %w", object, err)
	}
	lacks := &ConditionError{Want: fmt.Sprintf("%s=%s (%s) with %q", kind, status, reason, words)}
	for _, entry := range conditions {
		condition, isMap := entry.(map[string]any)
		if !isMap {
			continue
		}
		observed, known := condition["observedGeneration"].(int64)
		current := !known || observed == object.GetGeneration()
		message, _ := condition["message"].(string)
		if current && condition["type"] == kind && condition["status"] == status && (reason == "" || condition["reason"] == reason) &&
			Says(message, words...) == nil {
			return nil
		}
		lacks.Got = append(lacks.Got, fmt.Sprintf("%v=%v (%v, generation %d of %d): %v",
			condition["type"], condition["status"], condition["reason"], observed, object.GetGeneration(), condition["message"]))
	}
	return lacks
}
