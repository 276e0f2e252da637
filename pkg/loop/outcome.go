package loop

import (
	"cmp"
	"time"
)

// Outcome ends a pass. It is one of Done, RetryAt, Waiting, Stalled, Checkpoint and NotMine.
type Outcome interface{ outcome() }

// Done says that everything is as it should be.
type Done struct {
	// Recheck is when to come back; 0 is never.
	Recheck time.Duration
}

// RetryAt says that something failed which may pass.
type RetryAt struct {
	// Condition turns False, or Unknown where Unknown is set, with Reason and Message. Cause is a reason behind it, for a status that has
	// one; so it is in other outcomes.
	Condition, Reason, Message, Cause string
	// Unknown says that the truth is not known, rather than bad.
	Unknown bool
	// After is when to try again; 0 is in a second.
	After time.Duration
}

// Waiting says that something else has to happen first.
type Waiting struct {
	Condition, Reason, Message, Cause string
	// Recheck is when to come back if no event does; 0 is never.
	Recheck time.Duration
}

// Stalled says that only an edit helps.
type Stalled struct {
	Condition, Reason, Message, Cause string
	// Recheck is when to come back all the same, for causes outside of what is watched; 0 is never.
	Recheck time.Duration
}

// Checkpoint says that what the pass did is saved first. The next pass continues.
type Checkpoint struct {
	// Condition is False until then, with Reason and Message; empty: none.
	Condition, Reason, Message string
	// AtOnce begins the next pass, for objects for which the status write does not begin one.
	AtOnce bool
}

// NotMine says that the object is not this controller's to work on, such as one with another
// worker-name. Nothing is done, and its status is not written.
type NotMine struct{}

func (Done) outcome()       {}
func (RetryAt) outcome()    {}
func (Waiting) outcome()    {}
func (Stalled) outcome()    {}
func (Checkpoint) outcome() {}
func (NotMine) outcome()    {}

// atOnce begins the next pass as soon as this one has ended.
const atOnce = time.Millisecond

// RequeueAfter is when to come back after an outcome; 0 is never.
func RequeueAfter(outcome Outcome) time.Duration {
	switch o := outcome.(type) {
	case Done:
		return o.Recheck
	case RetryAt:
		return cmp.Or(o.After, time.Second)
	case Waiting:
		return o.Recheck
	case Stalled:
		return o.Recheck
	case Checkpoint:
		if o.AtOnce {
			return atOnce
		}
	}
	return 0
}
