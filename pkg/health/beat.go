package health

import "time"

const (
	// DefaultStaleAfter is how long a Lease may stay as it is where the version does not say.
	DefaultStaleAfter = 5 * time.Minute
	// skew is how wrong clocks may be, where a Lease is seen for the first time.
	skew = 5 * time.Minute
)

// Beat is what was seen of a Lease so far; the zero value: nothing.
type Beat struct {
	// Renewed is its renewTime, as it was read last; zero: there is no Lease, or nobody renewed it.
	Renewed time.Time
	// Moved is when that was seen to change, by our clock.
	Moved time.Time
	// Looked is when it was read last, by our clock; zero: never.
	Looked time.Time
	// Awaited says that it has to move before it counts: what was seen is of another revision.
	Awaited bool
}

// Anew is for a revision that was applied now, which may have broken what renews the Lease: what is seen
// first is of the one before.
func Anew() Beat { return Beat{Awaited: true} }

// See takes what was read now; zero: there is no Lease, or nobody renewed it. What is seen for the first
// time is new, unless it is older than clocks can be wrong. Answers is since when the user cluster has
// answered without a gap: nobody could renew a Lease before.
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

// IsMissing says that there is no Lease, or that nobody renewed it yet.
func (b Beat) IsMissing() bool { return b.Renewed.IsZero() }

// IsAwaited says that it is there and did not move since the revision was applied.
func (b Beat) IsAwaited() bool { return b.Awaited && !b.IsMissing() }

// IsStale says that it has not moved for too long.
func (b Beat) IsStale(now time.Time, staleAfter time.Duration) bool {
	return !b.IsMissing() && now.Sub(b.Moved) > staleAfter
}

// Next is how long it takes until it has to be read again.
func (b Beat) Next(now time.Time, staleAfter time.Duration) time.Duration {
	const looks = 2 // within the time after which it is stale
	return max(staleAfter/looks-now.Sub(b.Looked), 0)
}
