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
	// Looked is when it was read last, by our clock.
	Looked time.Time
	// Awaited says that it has to move before it counts: what was seen is of another revision.
	Awaited bool
}

// Anew is what counts of it for another revision, which may have broken what renews it.
func (b Beat) Anew() Beat {
	b.Awaited = !b.IsMissing()
	return b
}

// See takes what was read now; zero: there is no Lease, or nobody renewed it. What is seen for the first
// time is new, unless it is older than clocks can be wrong.
func (b Beat) See(renewed, now time.Time, staleAfter time.Duration) Beat {
	next := Beat{Renewed: renewed, Moved: b.Moved, Looked: now, Awaited: b.Awaited && renewed.Equal(b.Renewed)}
	switch {
	case renewed.IsZero():
		next.Moved = time.Time{}
	case b.Renewed.IsZero() && now.Sub(renewed) > staleAfter+skew:
		next.Moved = renewed
	case !renewed.Equal(b.Renewed):
		next.Moved = now
	}
	return next
}

// IsMissing says that there is no Lease, or that nobody renewed it yet.
func (b Beat) IsMissing() bool { return b.Renewed.IsZero() }

// IsStale says that it has not moved for too long.
func (b Beat) IsStale(now time.Time, staleAfter time.Duration) bool {
	return !b.IsMissing() && now.Sub(b.Moved) > staleAfter
}

// IsAwaited says that it is there and did not move since the revision began.
func (b Beat) IsAwaited() bool { return b.Awaited && !b.IsMissing() }

// Next is how long it takes until it has to be read again.
func (b Beat) Next(now time.Time, staleAfter time.Duration) time.Duration {
	const looks = 2 // within the time after which it is stale
	return max(staleAfter/looks-now.Sub(b.Looked), 0)
}
