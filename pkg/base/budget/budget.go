package budget

import (
	"runtime"
	"sync"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// part is the divisor of the free space: an object may take at most that part of it. So large objects are refused
	// first, and a flood of them leaves space for small ones.
	part = 16
	// floor is the divisor of a budget for the minimum that each namespace has, even if the budget is full.
	floor = 1024
	// slack is the number of bytes that a new status adds to an object.
	slack = 4 << 10
)

// Kind says how objects of a kind are cached.
type Kind[T any] struct {
	// Most is how many bytes all of them may take.
	Most int64
	// Namespaced: the objects of one namespace get at most half of what they leave. So a first namespace that takes all
	// that it can has a third of the budget, and the next one a third of the rest.
	Namespaced bool
	// Strip removes the fields of an object that its stub does not need.
	Strip func(*T)
	// IsAlwaysWhole says whether an object of this size in bytes is never made a stub. The platform bounds the number of these.
	IsAlwaysWhole func(*T, int64) bool
	// ReadIn is the only namespace whose objects' content is read, so that stubs of all others suffice; empty: all are read.
	ReadIn string
}

// pointer to an object.
type pointer[T any] interface {
	*T
	metav1.Object
}

// Budget is the limit of a cache for the objects of one kind. It is safe for concurrent use.
type Budget[T any, P pointer[T]] struct {
	// Kind is not changed after the cache starts.
	Kind Kind[T]

	mutex      sync.Mutex
	total      int64
	namespaces map[string]Sum
	known      map[types.UID]*held[T]
}

// held is the state of an object in memory.
type held[T any] struct {
	namespace string
	bytes     int64
	// written is the number of bytes that users wrote, if they are in memory.
	written int64
	isWhole bool
	// copies is their number in memory: previous versions, or those of a list that is being streamed.
	copies int
	last   weak.Pointer[T]
}

// Sum is the size of the objects of one namespace. It includes deleted objects until they are garbage-collected.
type Sum struct {
	Objects, Stubs int
	Bytes          int64
}

// New returns a Budget.
func New[T any, P pointer[T]](kind Kind[T]) *Budget[T, P] {
	return &Budget[T, P]{Kind: kind, namespaces: map[string]Sum{}, known: map[types.UID]*held[T]{}}
}

// Transform is for a cache: it makes a stub of an object for which there is no space. An object that is whole already
// stays so unless users make it larger. It drops managedFields. Other kinds are not changed. An object's bytes are
// free once its last copy is garbage-collected.
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
	unmark(one) // users may have set it
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

// HasSpace says whether there is space for the object of a stub by now. Then the next version of the object is cached whole.
func (b *Budget[T, P]) HasSpace(stub P) bool {
	bytes, isStub := Size(stub)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	known := b.known[stub.GetUID()]
	return isStub && known != nil && !b.isForeign(stub) && b.fits(known, bytes+slack)
}

// Of is the size of the objects of a namespace.
func (b *Budget[T, P]) Of(namespace string) Sum {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.namespaces[namespace]
}

func (b *Budget[T, P]) isForeign(one P) bool {
	return b.Kind.ReadIn != "" && one.GetNamespace() != b.Kind.ReadIn
}

// fits says whether an object may have this many bytes, instead of its present ones.
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
