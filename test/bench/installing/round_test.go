package installing

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

const (
	// installations of a round.
	installations = 200
	warmUp        = 20
	rounds        = 3
	concurrency   = 10
	// creators make installations at a time, as the measurements did that the bars come from.
	creators = 32
)

// outcome is what a round of one side came to.
type outcome struct {
	// count is how many were installed.
	count int
	wall  time.Duration
	cost  cost
	calls calls
}

func (o outcome) rate() float64 { return float64(o.count) / o.wall.Seconds() }

func (o outcome) text(who string) string {
	return fmt.Sprintf("%s: %d in %.2f s, %.1f a second; %s; %s", who, o.count, o.wall.Seconds(), o.rate(),
		o.cost.text(o.count), o.calls.text(o.count))
}

// measure takes what a side's work costs; work gives its end.
func (w *world) measure(b *testing.B, count int, work func() time.Time) outcome {
	b.Helper()
	before, callsBefore, begin := w.costs(b), w.calls(b), time.Now()
	end := work()
	return outcome{count: count, wall: end.Sub(begin), cost: w.costs(b).since(before), calls: w.calls(b).since(callsBefore)}
}

// install makes the installations of a round and waits until they are Ready.
func (w *world) install(b *testing.B, watching *watcher, addon string, names []string) landing {
	b.Helper()
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(creators)
	go func() {
		for _, name := range names {
			group.Go(func() error { return w.seed.Create(ctx, installation(addon, name)) })
		}
	}()
	came := watching.await(b, names)
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	return came
}

// trellis measures a round of the product.
func (w *world) trellis(b *testing.B, watching *watcher, addon string, names []string) (outcome, landing) {
	b.Helper()
	var came landing
	w.manager.profile()
	made := w.measure(b, len(names), func() time.Time {
		came = w.install(b, watching, addon, names)
		return came.ready
	})
	w.manager.profile()
	return made, came
}

// expectObjects fails unless each of the four kinds has that many objects of a round.
func (w *world) expectObjects(b *testing.B, prefix string, want int) {
	b.Helper()
	if err := w.count(b.Context(), &appsv1.DeploymentList{}, prefix, want); err != nil {
		b.Error(err)
	}
	if err := w.count(b.Context(), &corev1.ServiceAccountList{}, prefix, want); err != nil {
		b.Error(err)
	}
	if err := w.count(b.Context(), &corev1.ServiceList{}, prefix, want); err != nil {
		b.Error(err)
	}
	if err := w.count(b.Context(), &networkingv1.IngressList{}, prefix, want); err != nil {
		b.Error(err)
	}
}

// inTurns has one side begin in even rounds and the other in odd ones; rest follows each.
func inTurns(round int, ours, theirs, rest func()) {
	turns := []func(){ours, theirs}
	if round%2 == 1 {
		turns = []func(){theirs, ours}
	}
	for _, turn := range turns {
		turn()
		rest()
	}
}
