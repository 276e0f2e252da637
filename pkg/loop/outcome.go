package loop

import (
	"cmp"
	"context"
	"time"
)

// Outcome ends a pass. It is one of Done, RetryAt, Waiting and Stalled.
type Outcome interface{ outcome() }

// Done says that everything is as it should be.
type Done struct {
	// Recheck is when to look again; 0 is never.
	Recheck time.Duration
}

// RetryAt says that something failed which may pass.
type RetryAt struct {
	// Condition that turns False, or Unknown where Unknown is set, with Reason and Message.
	Condition, Reason, Message string
	// Unknown says that the truth can't be told, rather than that it is bad.
	Unknown bool
	// After is when to try again; 0 is in a second.
	After time.Duration
}

// Waiting says that something else has to happen first.
type Waiting struct {
	Condition, Reason, Message string
	// Recheck is when to look again, in case no event comes; 0 is never.
	Recheck time.Duration
}

// Stalled says that only an edit helps.
type Stalled struct {
	Condition, Reason, Message string
	// Recheck is when to look again all the same, for causes outside of what is watched; 0 is never.
	Recheck time.Duration
}

func (Done) outcome()    {}
func (RetryAt) outcome() {}
func (Waiting) outcome() {}
func (Stalled) outcome() {}

// Step is one step of a pass over facts F. Run returns nil to go on with the next step.
type Step[F any] struct {
	Name string
	Run  func(ctx context.Context, facts *F) Outcome
}

// Run takes the steps in order until one ends the pass; the end of the list is Done.
func Run[F any](ctx context.Context, steps []Step[F], facts *F) Outcome {
	for _, step := range steps {
		if outcome := step.Run(ctx, facts); outcome != nil {
			return outcome
		}
	}
	return Done{}
}

// ComeBack is when to look again after an outcome; 0 is never.
func ComeBack(outcome Outcome) time.Duration {
	switch o := outcome.(type) {
	case Done:
		return o.Recheck
	case RetryAt:
		return cmp.Or(o.After, time.Second)
	case Waiting:
		return o.Recheck
	case Stalled:
		return o.Recheck
	}
	return 0
}
