package loop_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-addons/trellis/pkg/base/loop"
)

// TestChangesThatKeepComingAreGathered fails when a single change waits, when the pauses do not grow while changes
// keep coming, grow without limit, or grow with the number of changes alone; or when a change after a quiet time
// waits because of earlier ones.
func TestChangesThatKeepComingAreGathered(t *testing.T) {
	t.Parallel()
	gathering := loop.Gathering{Longest: time.Second}
	now := time.Now()
	changed := func(why string, after, want time.Duration) {
		t.Helper()
		now = now.Add(after)
		if got := gathering.Pause(now); got != want {
			t.Errorf("%s: the pause is %s, want %s", why, got, want)
		}
	}
	const ms = time.Millisecond
	changed("the first", 0, 15*ms)
	changed("one before the pass", 5*ms, 15*ms)
	for _, want := range []time.Duration{30 * ms, 60 * ms, 120 * ms, 240 * ms, 480 * ms, 960 * ms, 1000 * ms, 1000 * ms} {
		gathering.Begin()
		changed("they keep coming", 900*ms, want)
	}
	changed("after a quiet time", 1001*ms, 15*ms)
	gathering.Begin()
	changed("two soon after each other", 200*ms, 30*ms)
}

// asked is a queue that stores the delays of requests.
type asked struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	after []time.Duration
}

func (a *asked) AddAfter(_ reconcile.Request, after time.Duration) { a.after = append(a.after, after) }

// TestEventsAreGathered fails when an event of a kind is reconciled at once, or when reconciliations are not counted.
func TestEventsAreGathered(t *testing.T) {
	t.Parallel()
	gathering, queue := loop.Gathering{Longest: time.Hour}, &asked{}
	changes, passes := gathering.Changes(reconcile.Request{}), 0
	reconcile := gathering.Wrap(func(context.Context, ctrl.Request) (ctrl.Result, error) {
		passes++
		return ctrl.Result{RequeueAfter: time.Minute}, nil
	})
	for _, send := range []func(){
		func() { changes.Create(t.Context(), event.CreateEvent{}, queue) },
		func() { changes.Update(t.Context(), event.UpdateEvent{}, queue) },
		func() { changes.Delete(t.Context(), event.DeleteEvent{}, queue) },
		func() { changes.Generic(t.Context(), event.GenericEvent{}, queue) },
	} {
		send()
		if result, err := reconcile.Reconcile(t.Context(), ctrl.Request{}); err != nil || result.RequeueAfter != time.Minute {
			t.Errorf("the pass gives %v, %v", result, err)
		}
	}
	const ms = time.Millisecond
	if want := []time.Duration{15 * ms, 30 * ms, 60 * ms, 120 * ms}; !slices.Equal(queue.after, want) || passes != 4 {
		t.Errorf("%d passes after %v, want %v", passes, queue.after, want)
	}
}
