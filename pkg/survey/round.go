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
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/fieldsets"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// What all lists of a round keep, in bytes; a cluster with 50,000 objects of add-ons has room. Field sets are kept whole as long as
// there is room for them, and by their sum from then on: one that differs from the record is read then.
const (
	maxKept       = 24 << 20
	maxKeptFields = 8 << 20
	// perObservation is what an object costs besides its texts.
	perObservation = 200
)

// round is the lists made since it began.
type round struct {
	ends     time.Time
	kinds    *calls.Kinds
	kept     *allowance
	whole    *allowance
	lock     sync.Mutex
	listings map[schema.GroupResource]*listing
	// relearnt is when what is served was asked for anew, for a kind that is not any more.
	relearnt time.Time
}

// listing is all objects of a kind that carry our label.
type listing struct {
	turn    turn
	taken   bool
	objects map[types.NamespacedName]observation
	// failed says that the API server misbehaved: it is not asked again in this round, by nobody.
	failed error
}

// observation is what is kept of an object's metadata.
type observation struct {
	uid types.UID
	// version is the resource version.
	version string
	owner   string
	ending  bool
	scaled  bool
	// fields of its owner; where sum is there, it is that of what they were.
	fields json.RawMessage
	sum    []byte
}

// observe is what is to be kept of an object; its fields are those of the answer.
func observe(live *metav1.PartialObjectMetadata) (observation, error) {
	if err := calls.CheckManaged(live.ManagedFields, live.Name); err != nil {
		return observation{}, err
	}
	if !calls.IsUID(live.UID) || len(live.ResourceVersion) > calls.MaxVersion {
		return observation{}, calls.Misbehaves("the UID of %q has %d characters, its version %d, or some that none has",
			calls.CutText(live.Name), len(live.UID), len(live.ResourceVersion))
	}
	seen := observation{
		uid: live.UID, version: live.ResourceVersion, ending: live.DeletionTimestamp != nil, scaled: fieldsets.IsScaled(live.ManagedFields),
	}
	if owner := live.Labels[kubermaticv1.LabelInstallation]; len(owner) == ownership.IDLength {
		seen.owner, seen.fields = owner, fieldsets.Of(live.ManagedFields, ownership.ManagerOf(owner))
	}
	return seen, nil
}

// lost are the first few of the recorded fields that the object does not have any more. Where only the sum of its fields is known,
// they are all lost if that is another.
func (s observation) lost(recorded json.RawMessage) []string {
	if s.sum == nil {
		return fieldsets.Lost(recorded, s.fields, s.scaled)
	}
	if len(recorded) == 0 || bytes.Equal(s.sum, sumOf(recorded)) {
		return nil
	}
	return []string{"."}
}

func sumOf(fields []byte) []byte {
	sum := sha256.Sum256(fields)
	return sum[:]
}

// list gives all objects of a kind with our label; fresh says that the list was made by this very call. Waiting for a list that
// somebody else makes ends with the context.
func (r *round) list(
	ctx context.Context, target calls.Target, where calls.Resource,
) (objects map[types.NamespacedName]observation, fresh bool, err error) {
	kept := r.listing(where.GroupResource())
	if err := kept.turn.take(ctx); err != nil {
		return nil, false, err
	}
	defer kept.turn.leave()
	if kept.taken || kept.failed != nil {
		return kept.objects, false, kept.failed
	}
	objects, err = r.listObjects(ctx, target, where)
	if calls.IsMisbehaviour(err) {
		kept.failed = err
	}
	if err != nil {
		return nil, false, err
	}
	kept.objects, kept.taken = objects, true
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
			if one, err = r.keep(one, len(live.Namespace)+len(live.Name), &kept); err != nil {
				return calls.Page{}, err
			}
			seen[types.NamespacedName{Namespace: live.Namespace, Name: live.Name}] = one
		}
		return calls.Page{Items: len(page.Items), Next: page.Continue, Fields: fields}, nil
	})
	if err != nil {
		r.kept.giveBack(kept.all)
		r.whole.giveBack(kept.fields)
		return nil, err
	}
	return seen, nil
}

// sizes are what a list keeps so far, in bytes: all of it, and the whole field sets in it.
type sizes struct{ all, fields int }

// keep is an observation that holds nothing of the answer it came from, as far as there is room.
func (r *round) keep(seen observation, name int, kept *sizes) (observation, error) {
	size := perObservation + name + len(seen.uid) + len(seen.version) + len(seen.owner)
	if raw := seen.fields; r.whole.take(len(raw)) {
		seen.fields = bytes.Clone(raw)
		size += len(raw)
		kept.fields += len(raw)
	} else {
		seen.fields, seen.sum = nil, sumOf(raw)
	}
	if !r.kept.take(size) {
		return observation{}, errKeptTooMuch()
	}
	kept.all += size
	return seen, nil
}

// allowance is how many bytes lists may keep of what they list. It may be used by many goroutines.
type allowance struct{ left atomic.Int64 }

func newAllowance(bytes int64) *allowance {
	a := &allowance{}
	a.left.Store(bytes)
	return a
}

// take takes so many, and says whether there were as many left.
func (a *allowance) take(bytes int) bool {
	if a.left.Add(-int64(bytes)) >= 0 {
		return true
	}
	a.giveBack(bytes)
	return false
}

func (a *allowance) giveBack(bytes int) { a.left.Add(int64(bytes)) }

// errKeptTooMuch ends lists whose items are too large together.
func errKeptTooMuch() error { return calls.Misbehaves("its lists have more than can be kept of them") }

// turn lets one goroutine at a time go on; waiting for it ends with the context.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) leave() { <-t }
