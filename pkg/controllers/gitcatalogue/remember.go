package gitcatalogue

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/base/loop"
)

func (r *Reconciler) remember(ctx context.Context, f *facts) *loop.Outcome {
	f.memory.refused, f.memory.writing, f.memory.beyondQuota = "", "", 0
	f.memory.digest, f.memory.generation = f.snapshot.Digest, f.object.Generation
	f.memory.children, f.memory.versions, f.memory.taken = map[string]string{}, f.plan.versions, f.plan.taken
	r.memories.await(client.ObjectKeyFromObject(f.object), f.plan.taken)
	for _, child := range f.plan.children {
		f.memory.children[child.name] = child.digest
	}
	return f.finish(ctx)
}

// finish ends a reconciliation with current content. It also reports a source that can't be reached.
func (f *facts) finish(ctx context.Context) *loop.Outcome {
	f.isCurrent = true
	if f.snapshot.Stale != nil {
		return fetchOutcome(ctx, f, f.snapshot.Stale)
	}
	if len(f.memory.taken) > 0 {
		return f.takenOutcome()
	}
	return &loop.Outcome{Kind: loop.Done, Recheck: recheck}
}

// memory is kept between reconciliations.
type memory struct {
	// asked is the last handled value of annotation reconcile-at, askedAt its time.
	asked   string
	askedAt time.Time
	// rests is the time until which nothing is written, since much was. It is lost at a restart: then one commit of each repository, of
	// 16 MiB at most, is written too early.
	rests time.Time
	// writing is the commit that is counted in rests and not known to be written as a whole.
	writing string
	// refused is the commit that the API server refused last, refusal the outcome; beyondQuota counts consecutive refusals by a quota.
	refused     string
	refusal     loop.Outcome
	beyondQuota int
	// announced is the commit of the last event.
	announced string
	// digest is the content's, for that generation; children are those of its catalogues.
	digest     string
	generation int64
	children   map[string]string
	versions   int32
	// taken has, by catalogue name, the add-ons that wait, since the name is taken.
	taken map[string]string
}

type memories struct {
	mutex sync.Mutex
	kept  map[types.NamespacedName]*memory
	// waiting are the catalogues that wait for a name, by the name.
	waiting map[string][]types.NamespacedName
}

func (m *memories) of(name types.NamespacedName) *memory {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.kept[name] == nil {
		m.kept[name] = &memory{}
	}
	return m.kept[name]
}

func (m *memories) forget(name types.NamespacedName) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.kept, name)
}
