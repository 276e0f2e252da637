package fetch

import (
	"context"
	"errors"
)

// Space is the disk that a Fetch writes to, and its share of the processor. The context carries it.
type Space struct {
	// Reserve is called before bytes are written, and may wait. A negative number returns bytes. An error ends the
	// fetch.
	Reserve func(bytes int64) error
	// Keeps selects the files that are used; others are not written.
	Keeps func(name string) bool
	// Turn is called before downloaded content is decoded, and may wait for other content of the same owner. Call end after decoding.
	Turn func(ctx context.Context) (end func(), err error)
}

// EntryCost is the maximum space of a file or folder on a disk in addition to its bytes, in bytes: its last block,
// and its name.
const EntryCost = 4<<10 + 512

// ErrNoSpace is wrapped if the content store has no space for a fetch. The source does not cause it.
var ErrNoSpace = errors.New("no space left")

type spaceKey struct{}

// WithSpace limits the bytes that are written with the context.
func WithSpace(ctx context.Context, space Space) context.Context {
	return context.WithValue(ctx, spaceKey{}, space)
}

// SpaceOf is the space of a context; without one, there is no limit.
func SpaceOf(ctx context.Context) Space {
	space, _ := ctx.Value(spaceKey{}).(Space)
	if space.Reserve == nil {
		space.Reserve = func(int64) error { return nil }
	}
	if space.Turn == nil {
		space.Turn = func(context.Context) (func(), error) { return func() {}, nil }
	}
	return space
}
