package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/trellis-addons/trellis/pkg/fetch"
)

const (
	// largest is the most that one fetch takes of the disk: a pack or the layers of an image, what they unpack to, and its entries.
	largest = 800 << 20
	// patience bounds a wait for space. It is shorter than the time after which a server counts as silent: nothing is read meanwhile.
	patience = 10 * time.Second
	// lookAgain is the time between two looks whether content is still being read. Looking takes at most one part of so many of the time.
	lookAgain   = time.Second
	lookingPart = 10
	// grain is how much is granted at a time at least.
	grain = 1 << 20
)

var (
	errBusy = fmt.Errorf("%w: other fetches use it, or its content is being read or belongs to catalogues that use less. "+
		"The fetch is tried again; if this stays, raise the manager's --store-limit (store.limit of the chart)", fetch.ErrNoSpace)
	errTooLarge = fmt.Errorf("%w: this content alone is larger than the manager's --store-limit: raise it (store.limit of the chart)",
		fetch.ErrNoSpace)
	errDiskFull = fmt.Errorf("%w on the manager's disk: give the manager a larger volume, or a lower --store-limit (store.limit of the chart)",
		fetch.ErrNoSpace)
)

// hold is the space of one fetch. The oldest hold can grow to share(), whatever others do: of fetches that all wait
// for each other, one goes on.
type hold struct {
	owner         string
	granted, used int64
}

// share is what one fetch takes at most, and what one owner may always have: half of the limit where that is less, so
// that one fetch never keeps out all others.
func (d *disk) share() int64 { return min(d.largest, d.limit/2) }

func (d *disk) begin(owner string) *hold {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := &hold{owner: owner}
	d.holds = append(d.holds, h)
	return h
}

// leave says that a hold grows no more: no space is left for it.
func (d *disk) leave(h *hold) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.holds = slices.DeleteFunc(d.holds, func(other *hold) bool { return other == h })
}

// end gives all of a hold back.
func (d *disk) end(h *hold) {
	d.leave(h)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.giveBack(h, h.granted)
}

// giveBack takes bytes off a hold and tells those who wait. The lock is held.
func (d *disk) giveBack(h *hold, bytes int64) {
	h.granted -= bytes
	d.held -= bytes
	close(d.freed)
	d.freed = make(chan struct{})
}

// space is what a fetch with a hold may write to.
func (d *disk) space(ctx context.Context, h *hold) context.Context {
	return fetch.WithSpace(ctx, fetch.Space{
		Reserve: func(bytes int64) error { return d.reserve(ctx, h, bytes) }, Keeps: d.keeps,
	})
}

// reserve makes a hold larger, and waits where there is no space. Below zero, it gives bytes back.
func (d *disk) reserve(ctx context.Context, h *hold, bytes int64) error {
	var late <-chan time.Time
	for {
		freed, err := d.grant(h, bytes)
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

// grant makes a hold larger at once, or returns what is closed when there is more space.
func (d *disk) grant(h *hold, bytes int64) (freed <-chan struct{}, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	missing := h.used + bytes - h.granted
	if bytes < 0 {
		d.giveBack(h, -missing)
	} else if missing > 0 {
		if h.granted+missing > d.limit {
			return nil, &fetch.UnavailableError{Subject: "the content store", Err: errTooLarge}
		}
		missing = min(max(missing, min(grain, d.limit>>8)), d.limit-h.granted)
		if !d.makeSpace(h, missing) {
			return d.freed, nil
		}
		h.granted += missing
		d.held += missing
	}
	h.used += bytes
	return nil, nil
}

// makeSpace removes content until a hold can have more bytes, and says whether it can.
func (d *disk) makeSpace(h *hold, bytes int64) bool {
	now, wanted := time.Now(), d.held+bytes
	if oldest := d.holds[0]; oldest != h {
		wanted += max(0, d.share()-oldest.granted)
	}
	if wanted > d.limit {
		return false
	}
	if d.held+bytes+d.kept > d.limit && !now.Before(d.nextLook) {
		d.nextLook = now.Add(max(lookAgain, lookingPart*d.collect()))
	}
	_ = d.evict(now, d.limit-d.held-bytes, h) // what can't be removed stays counted
	return d.held+bytes+d.kept <= d.limit
}

// collect finds the readers that ended, and says how long that took.
func collect() time.Duration {
	began := time.Now()
	runtime.GC()
	return time.Since(began)
}

// evict removes content that nobody reads, for a hold or in general, until at most so many bytes are kept, or none may go.
func (d *disk) evict(now time.Time, most int64, h *hold) (problems error) {
	for d.kept > most {
		digest := d.dispensable(now, h)
		if digest == "" {
			break
		}
		size := d.contents[digest].size
		delete(d.contents, digest)
		err := removeAll(d.path(digest))
		if err == nil {
			d.kept -= size
		}
		problems = errors.Join(problems, err)
	}
	return problems
}

// dispensable is the content to remove next, or "" where none may be removed. Content that is being read stays. Content that was not
// requested for an hour is removed first, then content of the owner that uses the most, running fetches included; within these the
// least recently used. A fetch whose owner uses more than a share removes no content of owners that use less.
func (d *disk) dispensable(now time.Time, h *hold) string {
	owned := map[string]int64{}
	for _, content := range d.contents {
		owned[content.owner] += content.size
	}
	for _, other := range d.holds {
		owned[other.owner] += other.granted
	}
	share := func(content *content) int64 {
		if now.Sub(content.used) > rememberedFor {
			return math.MaxInt64
		}
		return owned[content.owner]
	}
	least := int64(0)
	if h != nil && owned[h.owner] > d.share() {
		least = owned[h.owner]
	}
	var digests []string
	for digest, content := range d.contents {
		if content.root.Value() == nil && share(content) >= least {
			digests = append(digests, digest)
		}
	}
	if len(digests) == 0 {
		return ""
	}
	return slices.MinFunc(digests, func(a, b string) int {
		first, second := d.contents[a], d.contents[b]
		return cmp.Or(cmp.Compare(share(second), share(first)), first.used.Compare(second.used), cmp.Compare(a, b))
	})
}
