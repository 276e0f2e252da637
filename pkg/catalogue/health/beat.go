package health

import "time"

const (
	// DefaultStaleAfter is how long a Lease may stay unchanged if the version sets no time.
	DefaultStaleAfter = 5 * time.Minute
	// skew is how wrong clocks may be, when a Lease is seen for the first time.
	skew = 5 * time.Minute
)

// Beat has the observations of a Lease so far; the zero value has none.
type Beat struct {
	// Renewed is its renewTime, as last read; zero: there is no Lease, or it was never renewed.
	Renewed time.Time
	// Moved is when Renewed was seen to change, by our clock.
	Moved time.Time
	// Looked is when it was last read, by our clock; zero: never.
	Looked time.Time
	// Awaited says that it must change before it counts: the last observation is of another revision.
	Awaited bool
}

// NewBeat returns the Beat of a revision that was just applied, which may have broken the client that renews the Lease: the first
// observation is of the previous revision.
func NewBeat() Beat { return Beat{Awaited: true} }

// See adds what was read now; zero: there is no Lease, or it was never renewed. The first observation is new, unless
// it is older than clocks can be wrong. Answers is the time since which the user cluster has answered without a gap:
// before, the Lease could not be renewed.
func (b Beat) See(renewed, now, answers time.Time, staleAfter time.Duration) Beat {
	next := Beat{Renewed: renewed, Moved: b.Moved, Looked: now}
	switch {
	case renewed.IsZero():
		next.Moved = time.Time{}
	case b.Looked.IsZero() && b.Awaited:
		next.Moved, next.Awaited = now, true
	case b.Renewed.IsZero() && now.Sub(renewed) > staleAfter+skew:
		next.Moved = renewed
	case !renewed.Equal(b.Renewed):
		next.Moved = now
	case answers.After(b.Looked) && !b.IsStale(b.Looked, staleAfter):
		next.Moved, next.Awaited = now, b.Awaited
	default:
		next.Awaited = b.Awaited
	}
	return next
}

// IsMissing says that there is no Lease, or that it was never renewed.
func (b Beat) IsMissing() bool { return b.Renewed.IsZero() }

// IsAwaited says that it exists and did not change since the revision was applied.
func (b Beat) IsAwaited() bool { return b.Awaited && !b.IsMissing() }

// IsStale says that it has not changed for too long.
func (b Beat) IsStale(now time.Time, staleAfter time.Duration) bool {
	return !b.IsMissing() && now.Sub(b.Moved) > staleAfter
}

// Next is the time until it must be read again.
func (b Beat) Next(now time.Time, staleAfter time.Duration) time.Duration {
	const looks = 2 // within the time after which it is stale
	return max(staleAfter/looks-now.Sub(b.Looked), 0)
}
