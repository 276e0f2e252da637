package fleet

import (
	"context"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/copies"
)

// gatherAfter is how long changes are collected.
const gatherAfter = 100 * time.Millisecond

// Finding is the distributor's finding about one set.
type Finding struct {
	Name       types.NamespacedName
	Generation int64
	// Refusal is why the present spec is not copied, with its reason; empty if it is.
	Reason, Refusal string
	// Run numbers the reconciliation in which the set, or a catalogue that it depends on, last changed: earlier
	// findings from seeds are not about it.
	Run int64
	// Catalogues is the digest of the merged catalogues that the set depends on.
	Catalogues string
	// SecretProblems say which Secrets with values are not copied.
	SecretProblems []string
	// SecretWarnings say which Secrets it may use only because it used them before.
	SecretWarnings []string
}

// ledger has the results of reconciliations and workers.
type ledger struct {
	mutex sync.Mutex
	now   func() time.Time
	sets  map[types.UID]Finding
	// seeds are listed, in the order of the last reconciliation.
	seeds  []string
	states map[string]copies.State
	// since has, by set and seed, when the row was last synced and the seed reached, or when the wait for it began.
	// While the row is synced the time is not used: it is updated when that ends.
	since map[types.UID]map[string]time.Time
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// attach sets the queue of the controller.
func (l *ledger) attach(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.queue = queue
	for _, known := range l.sets {
		l.ask(known)
	}
	return nil
}

// Passed records the distributor's findings about all sets, and which seeds exist.
func (l *ledger) Passed(sets map[types.UID]Finding, seeds []string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	states, since := map[string]copies.State{}, map[types.UID]map[string]time.Time{}
	for _, seed := range seeds {
		if state, ok := l.states[seed]; ok {
			states[seed] = state
		}
	}
	for uid := range sets {
		since[uid] = map[string]time.Time{}
		for _, seed := range seeds {
			since[uid][seed] = l.now()
			if at, ok := l.since[uid][seed]; ok && !l.isCurrent(uid, seed) {
				since[uid][seed] = at
			}
		}
	}
	l.sets, l.seeds, l.states, l.since = sets, seeds, states, since
	for _, known := range sets {
		l.ask(known)
	}
}

// SeedChanged records a worker's result, if its seed still exists. The last rows of a seed that does not answer stay.
func (l *ledger) SeedChanged(state copies.State) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	known := false
	for _, seed := range l.seeds {
		known = known || seed == state.Seed
	}
	if !known {
		return
	}
	before := l.states[state.Seed]
	if state.Rows == nil && !state.Reached {
		state.Rows = before.Rows
	}
	for uid := range l.sets {
		if l.isCurrent(uid, state.Seed) {
			l.since[uid][state.Seed] = l.now() // synced until now
		}
	}
	l.states[state.Seed] = state
	for _, set := range l.sets {
		row, was := state.Rows[set.Name.Name], before.Rows[set.Name.Name]
		if before.Reached != state.Reached || before.Problem != state.Problem || !reflect.DeepEqual(row, was) {
			l.ask(set)
		}
	}
}

// isCurrent says whether the seed is reached and its row is synced.
func (l *ledger) isCurrent(uid types.UID, seed string) bool {
	set, state := l.sets[uid], l.states[seed]
	return state.Reached && isSynced(state.Rows[set.Name.Name], uid, set)
}

// isSynced says whether a row is about the present set and catalogues.
func isSynced(row copies.Row, uid types.UID, set Finding) bool {
	return row.UID == uid && row.Synced && row.Run >= set.Run
}

func (l *ledger) ask(known Finding) {
	if l.queue != nil {
		l.queue.AddAfter(reconcile.Request{NamespacedName: known.Name}, gatherAfter)
	}
}

// facts are the facts about one set.
type facts struct {
	Finding
	uid   types.UID
	now   time.Time
	seeds []seedFacts
}

// seedFacts are the facts about a set on one seed.
type seedFacts struct {
	name string
	// heard says that the seed has answered since the start of this process; problem is why it can't be reached now.
	heard, reached bool
	problem        string
	since          time.Time
	row            copies.Row
	synced         bool
}

// facts are the facts about a set; false before the distributor has read the generation.
func (l *ledger) facts(object *v1.AddonSet) (facts, bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	known, ok := l.sets[object.UID]
	if !ok || known.Generation != object.Generation {
		return facts{}, false
	}
	found := facts{Finding: known, uid: object.UID, now: l.now()}
	for _, name := range l.seeds {
		state, heard := l.states[name]
		row := state.Rows[object.Name]
		if row.UID != object.UID {
			row = copies.Row{}
		}
		found.seeds = append(found.seeds, seedFacts{
			name: name, heard: heard, reached: state.Reached, problem: state.Problem, since: l.since[object.UID][name],
			row: row, synced: isSynced(row, object.UID, known),
		})
	}
	return found, true
}
