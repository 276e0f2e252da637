package fetch

import (
	"context"
	"errors"
)

// Space is the disk that a Fetch writes to. It comes with the context.
type Space struct {
	// Reserve is asked before bytes are written, and may wait. Below zero, bytes are given back. An error ends the fetch.
	Reserve func(bytes int64) error
	// Keeps says which files are of use; others are not written.
	Keeps func(name string) bool
}

// EntryCost is the most that a file or folder takes of a disk besides its bytes: its last block, and its name.
const EntryCost = 4<<10 + 512

// ErrNoSpace is wrapped where the content store has no space for a fetch. That is no fault of the source.
var ErrNoSpace = errors.New("no space left")

type spaceKey struct{}

// WithSpace limits what is written with the context.
func WithSpace(ctx context.Context, space Space) context.Context {
	return context.WithValue(ctx, spaceKey{}, space)
}

// SpaceOf is the space of a context; without one, all may be written.
func SpaceOf(ctx context.Context) Space {
	space, _ := ctx.Value(spaceKey{}).(Space)
	if space.Reserve == nil {
		space.Reserve = func(int64) error { return nil }
	}
	return space
}
