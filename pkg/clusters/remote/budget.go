package remote

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Up to smallBytes an answer needs no place, up to smallWeight no weight: it never waits.
const (
	smallBytes  = 256 * kibi
	middleBytes = 4 * mebi
	largeBytes  = 32 * mebi
	smallWeight = 512 * kibi
	// valueWeight is the memory of a decoded value, in bytes. Bytes count twice: they are copied.
	valueWeight = 256
)

// Budget bounds the memory for answers of a process. An answer that is being read has a place by its size. A complete
// one waits for its weight, the memory of the decoded result, so a slow server holds no weight. No call waits for a
// place while it has a larger place or a weight, so all waiting ends.
type Budget struct {
	middle, large *semaphore.Weighted
	weight        *semaphore.Weighted
	most          int64
	middles       int64
}

// NewBudget divides bytes of memory: two thirds for decoding, one third for reading.
func NewBudget(bytes int64) *Budget {
	most, reading := bytes*2/3, bytes/3
	middles := max(2, reading/4/middleBytes)
	return &Budget{
		middle: semaphore.NewWeighted(middles), large: semaphore.NewWeighted(max(1, reading*3/4/largeBytes)),
		weight: semaphore.NewWeighted(most), most: most, middles: middles,
	}
}

// share bounds one client: a quarter of the middle places and one large place.
type share struct {
	budget        *Budget
	middle, large *semaphore.Weighted
}

func (b *Budget) share() *share {
	return &share{budget: b, middle: semaphore.NewWeighted(max(1, b.middles/4)), large: semaphore.NewWeighted(1)}
}

type hold struct {
	share   *share
	size    int64
	release func()
}

// reserve waits until an answer may have this many bytes; waited says that it had to wait.
func (h *hold) reserve(ctx context.Context, bytes int64) (waited bool, err error) {
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

// acquire waits for the weight of an answer, until release is called.
func (b *Budget) acquire(ctx context.Context, bytes, values int64) (release func(), err error) {
	weight := min(b.most, weigh(bytes, values))
	if weight <= smallWeight {
		return func() {}, nil
	}
	if err := b.weight.Acquire(ctx, weight); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { b.weight.Release(weight) }), nil
}

// lease collects the weights of one call's answers until the call has decoded them.
type lease struct {
	mutex    sync.Mutex
	releases []func()
}

type leaseKey struct{}

// Hold holds the weight of answers to calls with this context until release: call it after
// decoding. Without Hold, clients release it when they close a body, before they decode it.
func Hold(ctx context.Context) (held context.Context, release func()) {
	made := &lease{}
	return context.WithValue(ctx, leaseKey{}, made), made.end
}

func (l *lease) end() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, release := range l.releases {
		release()
	}
	l.releases = nil
}

func (l *lease) add(release func()) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.releases = append(l.releases, release)
}
