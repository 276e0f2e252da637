package world

import (
	"context"
	"errors"
	"regexp"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// TestCountsReconciliations fails when controller-runtime begins or ends a reconciliation with another log line, or
// names the object in another way.
func TestCountsReconciliations(t *testing.T) {
	counts, options := newReconciliations(), manager.Options{}
	counts.inLogs(&options)
	m := &Manager{t: t, Reconciliations: counts, queues: &queues{byName: map[string]queue{}}}
	good := types.NamespacedName{Namespace: "some", Name: "good"}
	bad, wide := types.NamespacedName{Namespace: "some", Name: "bad"}, types.NamespacedName{Name: "good"}
	began := 0
	reconciler := reconcile.Func(func(_ context.Context, request reconcile.Request) (reconcile.Result, error) {
		switch request.NamespacedName {
		case good:
			began = counts.Began("counted", "some", "good") - counts.Ended("counted", "some", "good")
		case bad:
			return reconcile.Result{}, reconcile.TerminalError(errors.New("it fails"))
		}
		return reconcile.Result{}, nil
	})
	made, err := controller.NewUnmanaged("counted", controller.Options{
		Reconciler: reconciler, Logger: options.Logger, SkipNameValidation: new(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	first := source.Func(func(_ context.Context, to queue) error {
		to.Add(reconcile.Request{NamespacedName: good})
		return nil
	})
	if err := errors.Join(m.queues.keep(made), made.Watch(first)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- made.Start(ctx) }()
	m.Settle("counted")
	to := m.queues.get("counted")
	for _, key := range []types.NamespacedName{good, bad, wide} {
		m.After(func() { to.Add(reconcile.Request{NamespacedName: key}) }, "counted", key.Namespace, key.Name)
	}
	m.Settle("counted")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if began != 1 {
		t.Errorf("%d reconciliations had begun and not ended during one", began)
	}
	for key, want := range map[types.NamespacedName]int{good: 4, bad: 2, wide: 2} {
		if got := counts.Ended("counted", key.Namespace, key.Name); got != want {
			t.Errorf("%d reconciliations of %s are counted, want %d", got, key, want)
		}
	}
	if got := counts.All("counted"); got != 8 {
		t.Errorf("%d reconciliations are counted, want 8", got)
	}
	if got := counts.All("another"); got != 0 {
		t.Errorf("%d reconciliations of another controller are counted", got)
	}
}

// TestCountingPassesOnWhatTheLoggerTakes fails when the counted lines do not reach the logger that a test gave to its
// manager, or when it gets others.
func TestCountingPassesOnWhatTheLoggerTakes(t *testing.T) {
	taken := &sink{}
	options := manager.Options{Logger: logr.New(taken)}
	newReconciliations().inLogs(&options)
	options.Logger.Info("shown")
	options.Logger.V(verbosity).Info(reconcileBegins)
	options.Logger.Error(errors.New("it fails"), reconcileFails)
	if got := taken.lines; len(got) != 2 || got[0] != "shown" || got[1] != reconcileFails {
		t.Errorf("the logger got %q", got)
	}
}

// sink accepts verbosity 0.
type sink struct{ lines []string }

func (s *sink) Init(logr.RuntimeInfo)                   {}
func (s *sink) Enabled(level int) bool                  { return level == 0 }
func (s *sink) Info(_ int, message string, _ ...any)    { s.lines = append(s.lines, message) }
func (s *sink) Error(_ error, message string, _ ...any) { s.lines = append(s.lines, message) }
func (s *sink) WithValues(...any) logr.LogSink          { return s }
func (s *sink) WithName(string) logr.LogSink            { return s }

func TestNameIsALabelOfItsOwn(t *testing.T) {
	label := regexp.MustCompile(`^t[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	seen := map[string]bool{}
	for _, of := range []string{"a subtest with spaces, and more than thirty characters", "-", "UPPER/lower"} {
		t.Run(of, func(t *testing.T) {
			for range 2 {
				name := Name(t)
				if len(name) > 30 || !label.MatchString(name) {
					t.Errorf("%q is not a DNS label of at most 30 characters", name)
				}
				if seen[name] {
					t.Errorf("%q is given twice", name)
				}
				seen[name] = true
			}
		})
	}
}
