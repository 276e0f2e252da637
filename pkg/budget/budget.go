package budget

import (
	"runtime"
	"sync"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// part of the room that is left is what an object may take at most of it. So large objects are refused first, and a flood of them
	// leaves room for small ones.
	part = 16
	// floor is the part of a budget that each namespace has, however full it is.
	floor = 1024
	// slack in bytes is what a new status adds to an object.
	slack = 4 << 10
)

// Kind says how objects of a kind are held.
type Kind[T any] struct {
	// Most is how many bytes all of them may take.
	Most int64
	// Namespaced: those of one namespace get half of what they leave at most. So a first one that takes all that it can has a third of the
	// budget, and the next one a third of what that left.
	Namespaced bool
	// Strip takes off an object what its stub does not need.
	Strip func(*T)
	// IsAlwaysWhole says whether an object of that many bytes is never made a stub. The platform bounds the number of these.
	IsAlwaysWhole func(*T, int64) bool
	// IsForeign says whether nothing reads the content of an object, so that a stub is enough; nil: of none.
	IsForeign func(*T) bool
}

// pointer to an object.
type pointer[T any] interface {
	*T
	metav1.Object
}

// Budget of a cache for the objects of one kind. All methods may be called by many goroutines.
type Budget[T any, P pointer[T]] struct {
	// Kind is not changed once the cache runs.
	Kind Kind[T]

	mutex      sync.Mutex
	total      int64
	namespaces map[string]Sum
	known      map[types.UID]*held[T]
}

// held is what is known of an object that is in memory.
type held[T any] struct {
	namespace string
	bytes     int64
	// written are the bytes that people wrote, if they were held.
	written int64
	isWhole bool
	// copies of it are in memory: former versions, or those of a list that is streaming in.
	copies int
	last   weak.Pointer[T]
}

// Sum is what objects of one namespace take together. It includes objects that are deleted, until they are collected.
type Sum struct {
	Objects, Stubs int
	Bytes          int64
}

// New makes a Budget.
func New[T any, P pointer[T]](kind Kind[T]) *Budget[T, P] {
	return &Budget[T, P]{Kind: kind, namespaces: map[string]Sum{}, known: map[types.UID]*held[T]{}}
}

// Transform is for a cache: it makes a stub of an object for which there is no room. What is whole already stays so unless people make it
// larger. It drops managedFields. Other kinds pass as they are. An object's bytes are free once the last copy of it is garbage and
// collected.
func (b *Budget[T, P]) Transform(object any) (any, error) {
	one, isOurs := object.(P)
	if !isOurs || one.GetUID() == "" {
		return object, nil
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	known := b.known[one.GetUID()]
	if known != nil && known.last.Value() == (*T)(one) { // a list passes twice
		return object, nil
	}
	sum := b.namespaces[one.GetNamespace()]
	switch {
	case known == nil:
		sum.Objects++
	case !known.isWhole:
		sum.Stubs--
	}
	one.SetManagedFields(nil)
	unmark(one) // people may have set it
	if known == nil {
		known = &held[T]{namespace: one.GetNamespace()}
		b.known[one.GetUID()] = known
	}
	bytes, status := sizeOf((*T)(one))
	known.isWhole = !b.isForeign(one) &&
		(known.isWhole && bytes-status <= known.written || b.Kind.IsAlwaysWhole(one, bytes) || b.fits(known, bytes))
	known.written = bytes - status
	if !known.isWhole {
		b.Kind.Strip(one)
		mark(one, bytes)
		bytes, _ = sizeOf((*T)(one))
		sum.Stubs++
	}
	b.namespaces[one.GetNamespace()] = sum
	b.charge(known, bytes-known.bytes)
	known.copies, known.last = known.copies+1, weak.Make((*T)(one))
	runtime.AddCleanup((*T)(one), b.collected, one.GetUID())
	return object, nil
}

// HasRoom says whether there is room for the object of a stub by now. The next version of the object is held whole then.
func (b *Budget[T, P]) HasRoom(stub P) bool {
	bytes, isStub := Size(stub)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	known := b.known[stub.GetUID()]
	return isStub && known != nil && !b.isForeign(stub) && b.fits(known, bytes+slack)
}

// Of is what the objects of a namespace take.
func (b *Budget[T, P]) Of(namespace string) Sum {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.namespaces[namespace]
}

func (b *Budget[T, P]) isForeign(one P) bool { return b.Kind.IsForeign != nil && b.Kind.IsForeign(one) }

// fits says whether an object may take so many bytes, beside what it has.
func (b *Budget[T, P]) fits(known *held[T], bytes int64) bool {
	left := b.Kind.Most - b.total
	if b.Kind.Namespaced {
		left = max(left/2, b.Kind.Most/floor) - b.namespaces[known.namespace].Bytes
	}
	return bytes-known.bytes <= left/part
}

func (b *Budget[T, P]) charge(known *held[T], bytes int64) {
	known.bytes += bytes
	b.total += bytes
	sum := b.namespaces[known.namespace]
	sum.Bytes += bytes
	b.namespaces[known.namespace] = sum
}

// collected is called when no cache and no controller has a copy any more.
func (b *Budget[T, P]) collected(uid types.UID) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	known := b.known[uid]
	known.copies--
	if known.copies > 0 {
		return
	}
	b.charge(known, -known.bytes)
	delete(b.known, uid)
	sum := b.namespaces[known.namespace]
	sum.Objects--
	if !known.isWhole {
		sum.Stubs--
	}
	b.namespaces[known.namespace] = sum
	if sum.Objects == 0 {
		delete(b.namespaces, known.namespace)
	}
}
