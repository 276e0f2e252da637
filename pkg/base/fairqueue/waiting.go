package fairqueue

import (
	"container/heap"
	"time"
)

// entry is an object that becomes ready at a time.
type entry[T comparable] struct {
	item  T
	at    time.Time
	order uint64
	index int
}

// waiting has objects, each once, by the time at which they become ready. It implements heap.Interface.
type waiting[T comparable] struct {
	entries []*entry[T]
	byItem  map[T]*entry[T]
	added   uint64
}

func newWaiting[T comparable]() *waiting[T] { return &waiting[T]{byItem: map[T]*entry[T]{}} }

func (w *waiting[T]) Len() int { return len(w.entries) }

// Less orders by time, then by arrival.
func (w *waiting[T]) Less(i, j int) bool {
	a, b := w.entries[i], w.entries[j]
	if !a.at.Equal(b.at) {
		return a.at.Before(b.at)
	}
	return a.order < b.order
}

func (w *waiting[T]) Swap(i, j int) {
	w.entries[i], w.entries[j] = w.entries[j], w.entries[i]
	w.entries[i].index, w.entries[j].index = i, j
}

func (w *waiting[T]) Push(added any) {
	one := added.(*entry[T])
	one.index = len(w.entries)
	w.entries = append(w.entries, one)
}

func (w *waiting[T]) Pop() any {
	last := len(w.entries) - 1
	one := w.entries[last]
	w.entries[last] = nil
	w.entries = w.entries[:last]
	return one
}

// add makes an object ready at a time, or at an earlier one that was added before.
func (w *waiting[T]) add(item T, at time.Time) {
	if one, known := w.byItem[item]; known {
		if at.Before(one.at) {
			one.at = at
			heap.Fix(w, one.index)
		}
		return
	}
	w.added++
	one := &entry[T]{item: item, at: at, order: w.added}
	w.byItem[item] = one
	heap.Push(w, one)
}

// drop removes an object.
func (w *waiting[T]) drop(item T) {
	if one, known := w.byItem[item]; known {
		heap.Remove(w, one.index)
		delete(w.byItem, item)
	}
}

func (w *waiting[T]) first() (item T, at time.Time, ok bool) {
	if len(w.entries) == 0 {
		return item, at, false
	}
	return w.entries[0].item, w.entries[0].at, true
}
