package loop

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/base/backoff"
)

// Kind is how a reconciliation ends. Traces and logs show it.
type Kind string

const (
	// Done says that all is as desired.
	Done Kind = "Done"
	// RetryAt says that a failure may be temporary.
	RetryAt Kind = "RetryAt"
	// Waiting says that another event has to happen first.
	Waiting Kind = "Waiting"
	// Stalled says that only an edit helps.
	Stalled Kind = "Stalled"
	// Checkpoint says that the results so far are saved first. The next reconciliation continues.
	Checkpoint Kind = "Checkpoint"
	// NotMine says that the object does not belong to this controller, for example one with another worker-name.
	// Nothing is done, and its status is not written.
	NotMine Kind = "NotMine"
)

// AtOnce is the Recheck that begins the next reconciliation as soon as this one has ended, for objects whose status
// write does not begin one.
const AtOnce = time.Millisecond

// Outcome ends a reconciliation; with nil the next step runs.
type Outcome struct {
	Kind Kind
	// Condition becomes False, or Unknown if Unknown is set, with Reason and Message; empty: none does. Cause is the
	// reason that caused it, for a status that has one.
	Condition, Reason, Message, Cause string
	// Unknown says that the state is unknown, rather than bad.
	Unknown bool
	// Recheck is when to reconcile again if no event occurs; 0 is never, and for RetryAt after a back-off.
	Recheck time.Duration
}

// Wait is an outcome of kind Waiting.
func Wait(condition, reason, message string, recheck time.Duration) *Outcome {
	return &Outcome{Kind: Waiting, Condition: condition, Reason: reason, Message: message, Recheck: recheck}
}

// Stall is an outcome of kind Stalled.
func Stall(condition, reason, message string) *Outcome {
	return &Outcome{Kind: Stalled, Condition: condition, Reason: reason, Message: message}
}

// Is reports whether there is an outcome of one of these kinds.
func (o *Outcome) Is(kinds ...Kind) bool { return o != nil && slices.Contains(kinds, o.Kind) }

// Within is an outcome of one of these kinds with a recheck after at most that time, where 0 is never; others stay
// the same.
func (o *Outcome) Within(most time.Duration, kinds ...Kind) *Outcome {
	if !o.Is(kinds...) {
		return o
	}
	sooner := *o
	sooner.Recheck = backoff.Sooner(o.Recheck, most)
	return &sooner
}

// As is the outcome as a condition of a type, for a generation.
func (o *Outcome) As(condition string, generation int64) metav1.Condition {
	state := metav1.ConditionFalse
	if o.Unknown {
		state = metav1.ConditionUnknown
	}
	return metav1.Condition{Type: condition, Status: state, Reason: o.Reason, Message: o.Message, ObservedGeneration: generation}
}

// RequeueAfter is when to reconcile again after an outcome; 0 is never.
func RequeueAfter(outcome *Outcome) time.Duration {
	switch {
	case outcome == nil:
		return 0
	case outcome.Kind == RetryAt:
		return cmp.Or(outcome.Recheck, time.Second)
	}
	return outcome.Recheck
}
