package world

import (
	"maps"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Reconciliations counts how often the controllers of one manager have begun and ended to reconcile each object. It
// reads controller-runtime's own log lines, so the product needs no hook for it.
type Reconciliations struct {
	mutex        sync.Mutex
	began, ended map[reconciled]int
}

// reconciled is an object of a controller. The namespace is empty for a cluster-wide object.
type reconciled struct{ controller, namespace, name string }

// The messages of controller-runtime 0.25, pkg/internal/controller/controller.go, at verbosity 5; an error has
// verbosity 0.
const (
	reconcileBegins = "Reconciling"
	reconcileEnds   = "Reconcile "
	reconcileFails  = "Reconciler error"
	verbosity       = 5
)

func newReconciliations() *Reconciliations {
	return &Reconciliations{began: map[reconciled]int{}, ended: map[reconciled]int{}}
}

// Began is the number of reconciliations of the object that the controller has begun.
func (r *Reconciliations) Began(controller, namespace, name string) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.began[reconciled{controller, namespace, name}]
}

// Ended is the number of reconciliations of the object that the controller has ended, with or without an error.
func (r *Reconciliations) Ended(controller, namespace, name string) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.ended[reconciled{controller, namespace, name}]
}

// All is the number of reconciliations that the controller has ended, of all objects.
func (r *Reconciliations) All(controller string) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	total := 0
	for of, count := range r.ended {
		if of.controller == controller {
			total += count
		}
	}
	return total
}

// of are the objects that the controller has begun to reconcile, with the number of times.
func (r *Reconciliations) of(controller string) map[reconciled]int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	known := map[reconciled]int{}
	for of, count := range r.began {
		if of.controller == controller {
			known[of] = count
		}
	}
	return known
}

// inLogs makes a manager's logger count. The previous logger of the manager still gets the lines of its verbosity.
func (r *Reconciliations) inLogs(options *manager.Options) {
	options.Logger = logr.New(countingSink{counts: r, next: options.Logger.GetSink(), values: map[string]string{}})
}

type countingSink struct {
	counts *Reconciliations
	next   logr.LogSink // nil: nothing is logged
	values map[string]string
}

// Init implements logr.LogSink.
func (s countingSink) Init(info logr.RuntimeInfo) {
	if s.next != nil {
		s.next.Init(info)
	}
}

// Enabled implements logr.LogSink.
func (s countingSink) Enabled(level int) bool {
	return level == verbosity || s.next != nil && s.next.Enabled(level)
}

// Info implements logr.LogSink.
func (s countingSink) Info(level int, message string, pairs ...any) {
	if level == verbosity {
		s.count(message)
	}
	if s.next != nil && s.next.Enabled(level) {
		s.next.Info(level, message, pairs...)
	}
}

// Error implements logr.LogSink.
func (s countingSink) Error(err error, message string, pairs ...any) {
	s.count(message)
	if s.next != nil {
		s.next.Error(err, message, pairs...)
	}
}

func (s countingSink) count(message string) {
	of := reconciled{s.values["controller"], s.values["namespace"], s.values["name"]}
	s.counts.mutex.Lock()
	defer s.counts.mutex.Unlock()
	switch {
	case message == reconcileBegins:
		s.counts.began[of]++
	case message == reconcileFails, strings.HasPrefix(message, reconcileEnds):
		s.counts.ended[of]++
	}
}

// WithValues implements logr.LogSink.
func (s countingSink) WithValues(pairs ...any) logr.LogSink {
	s.values = maps.Clone(s.values)
	for i := 0; i+1 < len(pairs); i += 2 {
		key, isText := pairs[i].(string)
		if value, known := pairs[i+1].(string); isText && known {
			s.values[key] = value
		}
	}
	if s.next != nil {
		s.next = s.next.WithValues(pairs...)
	}
	return s
}

// WithName implements logr.LogSink.
func (s countingSink) WithName(name string) logr.LogSink {
	if s.next != nil {
		s.next = s.next.WithName(name)
	}
	return s
}
