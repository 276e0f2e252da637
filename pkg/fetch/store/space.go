package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/trellis-addons/trellis/pkg/fetch"
)

const (
	// largest is the maximum space of one fetch on the disk: a pack or the layers of an image, their unpacked
	// content, and its entries.
	largest = 800 << 20
	// mostContents is the maximum number of contents in the store: all of them are in the index, and eviction reads
	// all of them.
	mostContents = 8192
	// ownerDecoding is the number of contents that one owner decodes at a time. Other owners do not wait for them.
	ownerDecoding = 2
	// patience bounds a wait for space. It is shorter than the time after which a server counts as silent: nothing is read meanwhile.
	patience = 10 * time.Second
	// lookAgain is the time between two checks whether content is still being read. Checks take at most one part in lookingPart of the
	// time.
	lookAgain   = time.Second
	lookingPart = 10
	// grain is the minimum that is granted at a time.
	grain = 1 << 20
)

var (
	errBusy = fmt.Errorf("%w: other fetches use it, or its content is being read or belongs to catalogues that use less. "+
		"The fetch is tried again; if this lasts, raise the manager's --store-limit (store.limit of the chart)", fetch.ErrNoSpace)
	errTooLarge = fmt.Errorf("%w: this content alone is larger than the manager's --store-limit: raise it (store.limit of the chart)",
		fetch.ErrNoSpace)
	errDiskFull = fmt.Errorf("%w on the manager's disk: give the manager a larger volume, or a lower --store-limit (store.limit of the chart)",
		fetch.ErrNoSpace)
)

// hold is the space of one fetch. The oldest hold can always grow to share(): of fetches that all wait for each
// other, one continues.
type hold struct {
	owner         string
	granted, used int64
}

// share is the maximum of one fetch, and the minimum that one owner always has: half of the limit if that is less, so
// that one fetch never blocks all others.
func (d *disk) share() int64 { return min(d.largest, d.limit/2) }

func (d *disk) begin(owner string) *hold {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := &hold{owner: owner}
	d.holds = append(d.holds, h)
	return h
}

// leave notes that a hold no longer grows: no space is reserved for it.
func (d *disk) leave(h *hold) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.holds = slices.DeleteFunc(d.holds, func(other *hold) bool { return other == h })
}

// end returns all space of a hold.
func (d *disk) end(h *hold) {
	d.leave(h)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.giveBack(h, h.granted)
}

// giveBack returns bytes of a hold and wakes waiting holds. The lock is held.
func (d *disk) giveBack(h *hold, bytes int64) {
	h.granted -= bytes
	d.held -= bytes
	close(d.freed)
	d.freed = make(chan struct{})
}

// space is the space that a fetch with a hold may write to.
func (d *disk) space(ctx context.Context, h *hold) context.Context {
	return fetch.WithSpace(ctx, fetch.Space{
		Reserve: func(bytes int64) error { return d.reserve(ctx, h, bytes) }, Keeps: d.keeps,
		Turn: func(ctx context.Context) (func(), error) {
			end, err := d.decoding.Take(ctx, h.owner)
			if err != nil {
				return nil, &fetch.UnavailableError{Subject: "the content store", Err: err}
			}
			return end, nil
		},
	})
}

// reserve enlarges a hold, and waits if there is no space. A negative number returns bytes.
func (d *disk) reserve(ctx context.Context, h *hold, bytes int64) error {
	var late <-chan time.Time
	for {
		freed, first, err := d.grant(h, bytes)
		if first != nil {
			first()
			continue
		}
		if err != nil || freed == nil {
			return err
		}
		if late == nil {
			late = time.After(patience)
		}
		select {
		case <-freed:
			continue
		case <-time.After(lookAgain):
			continue
		case <-late:
		case <-ctx.Done():
		}
		return &fetch.UnavailableError{Subject: "the content store", Err: errBusy}
	}
}

// grant enlarges a hold at once, or returns a channel that is closed when there is more space, or a function to call
// first, which frees space.
func (d *disk) grant(h *hold, bytes int64) (freed <-chan struct{}, first func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	missing := h.used + bytes - h.granted
	if bytes < 0 {
		d.giveBack(h, -missing)
	} else if missing > 0 {
		if h.granted+missing > d.limit {
			return nil, nil, &fetch.UnavailableError{Subject: "the content store", Err: errTooLarge}
		}
		missing = min(max(missing, min(grain, d.limit>>8)), d.limit-h.granted)
		if first, ok := d.makeSpace(h, missing); !ok {
			return d.freed, first, nil
		}
		h.granted += missing
		d.held += missing
	}
	h.used += bytes
	return nil, nil, nil
}

// makeSpace reports whether a hold can have more bytes, or returns a function to call first, such as the removal of
// content.
func (d *disk) makeSpace(h *hold, bytes int64) (first func(), ok bool) {
	now, wanted := time.Now(), d.held+bytes
	if oldest := d.holds[0]; oldest != h {
		wanted += max(0, d.share()-oldest.granted)
	}
	if wanted > d.limit {
		return nil, false
	}
	if d.held+bytes+d.kept <= d.limit {
		return nil, true
	}
	if !now.Before(d.nextLook) {
		d.nextLook = now.Add(lookAgain)
		return d.look, false
	}
	// It frees more than is missing: a fetch requests a grain at a time, and each removal reads and sorts all
	// contents.
	if gone := d.evict(now, d.limit-d.held-max(bytes, d.limit>>6), h); len(gone) > 0 {
		return func() { _ = d.discard(gone) }, false // content that can't be removed stays counted
	}
	return nil, false
}

// look finds the readers that ended.
func (d *disk) look() {
	took := d.collect()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.nextLook = time.Now().Add(max(lookAgain, lookingPart*took))
}

// collect finds the readers that ended, and returns how long that took.
func collect() time.Duration {
	began := time.Now()
	runtime.GC()
	return time.Since(began)
}

// counts is the number of bytes that a content takes of the limit: its size, or its share of the number of contents.
func (d *disk) counts(one *content) int64 { return max(one.size, d.limit/mostContents) }

func (d *disk) keep(one *content) {
	d.contents[one.digest] = one
	d.kept += d.counts(one)
}

func (d *disk) drop(one *content) {
	delete(d.contents, one.digest)
	d.kept -= d.counts(one)
}

// leaving is evicted content that still has to be removed from the disk. It holds its space until then.
type leaving struct {
	hold
	path string
}

// discard removes evicted content from the disk. The caller does not hold the lock.
func (d *disk) discard(gone []leaving) (problems error) {
	for i := range gone {
		err := d.remove(gone[i].path)
		if err == nil {
			d.end(&gone[i].hold)
		}
		problems = errors.Join(problems, err)
	}
	return problems
}

// evict takes content that is not being read out of the store, for a hold or in general, until at most so many bytes
// are stored, or none may be removed. It first removes content that was not requested for an hour, then content of
// the owner that uses the most, including running fetches; within these the least recently used. A fetch whose owner
// uses more than a share removes no content of owners that use less.
func (d *disk) evict(now time.Time, most int64, h *hold) (gone []leaving) {
	if d.kept <= most {
		return nil
	}
	owned, unread := d.owners()
	share := func(one *content) int64 {
		if now.Sub(one.used) > rememberedFor {
			return math.MaxInt64
		}
		return owned[one.owner]
	}
	order := func(a, b *content) int {
		return cmp.Or(cmp.Compare(share(b), share(a)), a.used.Compare(b.used), cmp.Compare(a.digest, b.digest))
	}
	for _, queue := range unread {
		slices.SortFunc(queue, order)
	}
	for d.kept > most {
		var next *content
		for _, queue := range unread {
			if len(queue) > 0 && (next == nil || order(queue[0], next) < 0) {
				next = queue[0]
			}
		}
		if next == nil || h != nil && owned[h.owner] > d.share() && share(next) < owned[h.owner] {
			break
		}
		unread[next.owner] = unread[next.owner][1:]
		if one, ok := d.takeOut(next); ok {
			owned[next.owner] -= d.counts(next)
			gone = append(gone, one)
		}
	}
	return gone
}

// owners returns the bytes that each owner uses, running fetches included, and its content that is not being read.
func (d *disk) owners() (owned map[string]int64, unread map[string][]*content) {
	owned, unread = map[string]int64{}, map[string][]*content{}
	for _, other := range d.holds {
		owned[other.owner] += other.granted
	}
	for _, one := range d.contents {
		owned[one.owner] += d.counts(one)
		if one.root.Value() == nil {
			unread[one.owner] = append(unread[one.owner], one)
		}
	}
	return owned, unread
}

// takeOut moves content into the work folder, so that equal content can be stored again before the removal ends. Content that can't be
// moved stays in the store.
func (d *disk) takeOut(one *content) (gone leaving, ok bool) {
	d.moved++
	to := filepath.Join(d.folder, workFolder, fmt.Sprintf("gone-%d", d.moved))
	if move(d.path(one.digest), to) != nil {
		return leaving{}, false
	}
	d.drop(one)
	d.held += d.counts(one)
	return leaving{hold{granted: d.counts(one)}, to}, true
}
