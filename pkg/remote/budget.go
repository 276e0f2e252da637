package remote

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// An answer up to smallBytes needs no place, and none up to smallWeight waits to be decoded: small answers never starve.
const (
	smallBytes  = 256 * kibi
	middleBytes = 4 * mebi
	largeBytes  = 32 * mebi
	smallWeight = 512 * kibi
	// valueWeight is what a decoder makes of one value, in bytes; a byte on the wire counts twice, since it is copied.
	valueWeight = 256
)

// Budget bounds what a process holds of answers at a time. Bytes of an answer that is still coming take a place by its size;
// what it will be decoded to takes its weight once all of it is there, so that only computing holds weight and no slow server.
// Nobody waits for a place while it holds a larger one, or for a place while it holds weight: so all waiting ends.
type Budget struct {
	middle, large *semaphore.Weighted
	weight        *semaphore.Weighted
	most          int64
	middles       int64
}

// NewBudget shares bytes of memory out: two thirds for what is decoded, one for what is on its way.
func NewBudget(bytes int64) *Budget {
	most, reading := bytes*2/3, bytes/3
	middles := max(2, reading/4/middleBytes)
	return &Budget{
		middle: semaphore.NewWeighted(middles), large: semaphore.NewWeighted(max(1, reading*3/4/largeBytes)),
		weight: semaphore.NewWeighted(most), most: most, middles: middles,
	}
}

// share is what one client may take of the places: a quarter of the middle ones and one large one.
type share struct {
	budget        *Budget
	middle, large *semaphore.Weighted
}

func (b *Budget) share() *share {
	return &share{budget: b, middle: semaphore.NewWeighted(max(1, b.middles/4)), large: semaphore.NewWeighted(1)}
}

// hold is what an answer has of a budget.
type hold struct {
	share *share
	size  int64
	// release gives the place back; nil where there is none.
	release func()
}

// room waits until an answer may have that many bytes; waited says that it did not get its place at once.
func (h *hold) room(ctx context.Context, bytes int64) (waited bool, err error) {
	own, all := h.share.middle, h.share.budget.middle
	switch {
	case bytes <= smallBytes || bytes <= h.size:
		return false, nil
	case bytes > middleBytes:
		own, all = h.share.large, h.share.budget.large
	}
	waited = !own.TryAcquire(1)
	if waited {
		if err := own.Acquire(ctx, 1); err != nil {
			return true, err
		}
	}
	if !all.TryAcquire(1) {
		waited = true
		if err := all.Acquire(ctx, 1); err != nil {
			own.Release(1)
			return true, err
		}
	}
	h.drop()
	h.size = middleBytes
	if bytes > middleBytes {
		h.size = 1 << 62
	}
	h.release = func() { all.Release(1); own.Release(1) }
	return waited, nil
}

func (h *hold) drop() {
	if h.release != nil {
		h.release()
		h.release = nil
	}
}

func weigh(bytes, values int64) int64 { return 2*bytes + valueWeight*values }

// take waits for what an answer weighs, until release is called.
func (b *Budget) take(ctx context.Context, bytes, values int64) (release func(), err error) {
	weight := min(b.most, weigh(bytes, values))
	if weight <= smallWeight {
		return func() {}, nil
	}
	if err := b.weight.Acquire(ctx, weight); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { b.weight.Release(weight) }), nil
}

// lease gathers what the answers to one call weigh until the call has decoded them.
type lease struct {
	mutex    sync.Mutex
	releases []func()
}

type leaseKey struct{}

// Hold has what the answers to calls with the context weigh held until release is called, which is when they have been
// decoded. Without it they are held until their bodies are closed, which clients do before they decode.
func Hold(ctx context.Context) (held context.Context, release func()) {
	kept := &lease{}
	return context.WithValue(ctx, leaseKey{}, kept), kept.end
}

func (l *lease) end() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, release := range l.releases {
		release()
	}
	l.releases = nil
}

func (l *lease) keep(release func()) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.releases = append(l.releases, release)
}
