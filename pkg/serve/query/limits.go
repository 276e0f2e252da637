package query

import (
	"context"
	"time"

	"github.com/trellis-addons/trellis/pkg/base/turns"
)

// work is what few requests do at a time. Owners share its turns fairly: users, or the namespaces of previews.
type work int

const (
	// answering has an answer in memory that is made for one request, until its caller has read it.
	answering work = iota
	// reading reads the whole index of rows.
	reading
	// scoping has the namespaces of a caller reviewed: each takes reviewsOfOne of reviewsAtOnce.
	scoping
	// streaming has an open stream.
	streaming
	// receiving has the body of a preview in memory, which is being read or waits for the preview's turn: slow bodies would take all turns.
	receiving
	// previewing renders beside reconciliations.
	previewing
)

// answersOfOne is how many answers of one user are in memory.
const answersOfOne = 8

// limits are how many requests do some work at a time, in total and of each owner, how long a request waits for its turn, and what its
// refusal says.
var limits = [...]struct {
	most, each int
	wait       time.Duration
	problem    string
}{
	answering:  {64, answersOfOne, 5 * time.Second, "other answers are being read"},   // all routes that are isOwn
	reading:    {4, 1, 5 * time.Second, "other requests are being answered"},          // installations, clusters, images
	scoping:    {3, 1, 5 * time.Second, "rights of other callers are being reviewed"}, // these and watch, without a namespace
	streaming:  {64, 4, time.Second, "too many streams are open"},                     // watch
	receiving:  {16, 2, 5 * time.Second, "other previews are being made"},             // preview, sets/{name}/preview
	previewing: {2, 1, 5 * time.Second, "other previews are being made"},              // these, and an installation with revisions
}

// turnsOf are the turns of each work.
type turnsOf [len(limits)]turns.Turns

func newTurns() *turnsOf {
	made := &turnsOf{}
	for what, limit := range limits {
		made[what].Most, made[what].Each = limit.most, limit.each
	}
	return made
}

// take waits for a turn of an owner. Errors: *UnavailableError.
func (t *turnsOf) take(ctx context.Context, what work, owner string) (end func(), err error) {
	waiting, stop := context.WithTimeout(ctx, limits[what].wait)
	defer stop()
	if end, err = t[what].Take(waiting, owner); err != nil {
		return nil, &UnavailableError{limits[what].problem, err}
	}
	return end, nil
}
