package query

import (
	"context"
	"time"

	"github.com/trellis-addons/trellis/pkg/base/turns"
)

const (
	// pagesAtOnce is how many requests read the index at a time.
	pagesAtOnce = 4
	// scopesAtOnce is how many callers have their namespaces reviewed at a time: each takes reviewsOfOne of reviewsAtOnce.
	scopesAtOnce = 3
	// answersAtOnce bounds the answers in memory that are made for one request, with those that slow callers read, and answersOfOne those
	// of one user.
	answersAtOnce, answersOfOne = 64, 8
	// turnWait is how long a request waits for one of these.
	turnWait = 5 * time.Second
)

// limit lets few requests work at a time, fairly between users.
type limit struct {
	turns.Turns
	wait    time.Duration
	problem string
}

// take waits for a turn of a user. Errors: *UnavailableError.
func (l *limit) take(ctx context.Context, of *Identity) (end func(), err error) {
	waiting, stop := context.WithTimeout(ctx, l.wait)
	defer stop()
	if end, err = l.Take(waiting, of.owner()); err != nil {
		return nil, &UnavailableError{l.problem, err}
	}
	return end, nil
}
