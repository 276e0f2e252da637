package survey

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/fieldsets"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// Limits of all lists of a round, in bytes, for 50,000 objects. Beyond maxKeptFields, field sets are stored as
// checksums; an object whose checksum differs from the record is read.
const (
	maxKept       = 24 << 20
	maxKeptFields = 8 << 20
	// perObservation is the size of an object in addition to its texts, in bytes.
	perObservation = 200
)

type round struct {
	ends     time.Time
	kinds    *calls.Kinds
	kept     allowance
	whole    allowance
	lock     sync.Mutex
	listings map[schema.GroupResource]*listing
	resetAt  time.Time
}

type listing struct {
	turn     turn
	complete bool
	objects  map[types.NamespacedName]observation
	// failed says that the API server misbehaved: this round does not list again.
	failed error
}

type observation struct {
	uid      types.UID
	version  string
	owner    string
	deleting bool
	scaling  fieldsets.Scaling
	// fields of the owner's manager, and when it last changed the object; if sum is set, only the checksum of the fields
	// is known.
	fields    json.RawMessage
	sum       []byte
	writtenAt int64
}

// observe checks an object's metadata. Its fields still share memory with the answer.
func observe(live *metav1.PartialObjectMetadata) (observation, error) {
	if err := calls.CheckManaged(live.ManagedFields, live.Name); err != nil {
		return observation{}, err
	}
	if !calls.IsUID(live.UID) || len(live.ResourceVersion) > calls.MaxVersion {
		return observation{}, calls.Misbehaves("the UID of %q has %d characters, its version %d, or invalid characters",
			calls.CutText(live.Name), len(live.UID), len(live.ResourceVersion))
	}
	seen := observation{uid: live.UID, version: live.ResourceVersion, deleting: live.DeletionTimestamp != nil}
	if owner := live.Labels[kubermaticv1.LabelInstallation]; len(owner) == ownership.IDLength {
		seen.owner = owner
		manager := ownership.ManagerOf(owner)
		seen.fields, seen.writtenAt = fieldsets.Of(live.ManagedFields, manager)
		seen.scaling = fieldsets.ScalingOf(live.ManagedFields, manager)
	}
	return seen, nil
}

// lost are the first recorded fields that the object lacks; "." if only their sum differs.
func (s observation) lost(entry ownership.Entry) []string {
	if s.sum == nil {
		return fieldsets.Lost(entry.Fields, s.fields, s.scaling.IsOf(entry.GroupKind()))
	}
	if len(entry.Fields) == 0 || bytes.Equal(s.sum, sumOf(entry.Fields)) {
		return nil
	}
	return []string{"."}
}

func sumOf(fields []byte) []byte {
	sum := sha256.Sum256(fields)
	return sum[:]
}

// list returns all objects of a kind with our label; fresh says that this call listed them. It waits for the list of
// another goroutine no longer than the context lasts.
func (r *round) list(
	ctx context.Context, target calls.Target, where calls.Resource,
) (objects map[types.NamespacedName]observation, fresh bool, err error) {
	kept := r.listing(where.GroupResource())
	if err := kept.turn.acquire(ctx); err != nil {
		return nil, false, err
	}
	defer kept.turn.release()
	if kept.complete || kept.failed != nil {
		return kept.objects, false, kept.failed
	}
	objects, err = r.listObjects(ctx, target, where)
	if calls.IsMisbehaviour(err) {
		kept.failed = err
	}
	if err != nil {
		return nil, false, err
	}
	kept.objects, kept.complete = objects, true
	return objects, true, nil
}

func (r *round) listing(kind schema.GroupResource) *listing {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.listings[kind] == nil {
		r.listings[kind] = &listing{turn: newTurn()}
	}
	return r.listings[kind]
}

func (r *round) listObjects(ctx context.Context, target calls.Target, where calls.Resource) (map[types.NamespacedName]observation, error) {
	seen, kept := map[types.NamespacedName]observation{}, sizes{}
	client := target.Metadata.Resource(where.GroupVersionResource)
	err := calls.EachPage(ctx, kubermaticv1.LabelInstallation, func(ctx context.Context, options metav1.ListOptions) (calls.Page, error) {
		page, err := client.List(ctx, options)
		if err != nil {
			return calls.Page{}, err
		}
		fields := 0
		for i := range page.Items {
			if ctx.Err() != nil {
				return calls.Page{}, ctx.Err()
			}
			live := &page.Items[i]
			fields += fieldsets.SizeOf(live.ManagedFields)
			one, err := observe(live)
			if err != nil {
				return calls.Page{}, err
			}
			if one, err = r.compact(one, len(live.Namespace)+len(live.Name), &kept); err != nil {
				return calls.Page{}, err
			}
			seen[types.NamespacedName{Namespace: live.Namespace, Name: live.Name}] = one
		}
		return calls.Page{Items: len(page.Items), Next: page.Continue, Fields: fields}, nil
	})
	if err != nil {
		r.kept.release(kept.all)
		r.whole.release(kept.fields)
		return nil, err
	}
	return seen, nil
}

type sizes struct{ all, fields int }

// compact copies an observation out of its answer, within the limits.
func (r *round) compact(seen observation, name int, kept *sizes) (observation, error) {
	size := perObservation + name + len(seen.uid) + len(seen.version) + len(seen.owner)
	if raw := seen.fields; r.whole.reserve(len(raw)) {
		seen.fields = bytes.Clone(raw)
		size += len(raw)
		kept.fields += len(raw)
	} else {
		seen.fields, seen.sum = nil, sumOf(raw)
	}
	if !r.kept.reserve(size) {
		return observation{}, errKeptTooMuch()
	}
	kept.all += size
	return seen, nil
}

// allowance is a number of bytes that goroutines share.
type allowance struct{ free atomic.Int64 }

func (a *allowance) reserve(bytes int) bool {
	if a.free.Add(-int64(bytes)) >= 0 {
		return true
	}
	a.release(bytes)
	return false
}

func (a *allowance) release(bytes int) { a.free.Add(int64(bytes)) }

func errKeptTooMuch() error { return calls.Misbehaves("its lists take more memory than allowed") }

// turn is a lock; waiting for it ends with the context.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) acquire(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) release() { <-t }
