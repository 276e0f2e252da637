package distributor

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// How long status changes are gathered: seeds answer within a moment of each other, and all of it is one write. A refused
// spec is told at once.
const (
	gatherAfterPass = 500 * time.Millisecond
	gatherAfterSeed = 75 * time.Millisecond
)

// board is where passes and workers leave what they know, and where the status controller reads it.
type board struct {
	mutex    sync.Mutex
	outcomes map[types.UID]outcome
	// seeds by name, of those that exist; targets keeps their order.
	seeds   map[string]seedState
	targets []string
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// outcome is what a pass found out about one catalogue.
type outcome struct {
	request    reconcile.Request
	generation int64
	// refusal is why the present spec does not count, with its reason; empty where it does.
	reason, refusal string
	// kept is set when the last valid spec stands in for the present one.
	kept bool
	// parent is the name of the catalogue in git that this one was generated from.
	parent string
	// tooLarge names the merged add-ons that were refused.
	tooLarge  []string
	conflicts []v1.CatalogueConflict
	// wonInGit is the catalogue in git that the winner of the first conflict was generated from; empty: none.
	wonInGit string
	// digests of the merged add-ons that the catalogue has a part in.
	digests map[string]string
	// secrets that its entries name, and what is wrong with them on the master.
	secrets        []string
	secretProblems map[string]string
	// leave are the versions that the catalogue has clusters leave; leaveProblem is why its annotation can't be read.
	leave        catalogue.Leave
	leaveProblem string
}

func newBoard() *board {
	return &board{outcomes: map[types.UID]outcome{}, seeds: map[string]seedState{}}
}

// attach gives the board the queue of the status controller.
func (b *board) attach(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.queue = queue
	for _, known := range b.outcomes {
		queue.Add(known.request)
	}
}

// passed takes down the outcome of a pass.
func (b *board) passed(p *pass) {
	contributions := contributionsOf(p)
	outcomes := make(map[types.UID]outcome, len(p.readings))
	for _, reading := range p.readings {
		outcomes[reading.object.UID] = outcomeOf(reading, p, contributions[reading.object.UID])
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.outcomes = outcomes
	b.retarget(p.targets)
	for _, known := range outcomes {
		if known.refusal != "" {
			b.tell(known, 0)
			continue
		}
		b.tell(known, gatherAfterPass)
	}
}

// retarget drops the rows of Seeds that went and makes rows for new ones.
func (b *board) retarget(targets []target) {
	seeds := make(map[string]seedState, len(targets))
	b.targets = nil
	for _, to := range targets {
		state, ok := b.seeds[to.name]
		if !ok {
			state = seedState{name: to.name, problem: "not reached yet"}
		}
		seeds[to.name] = state
		b.targets = append(b.targets, to.name)
	}
	b.seeds = seeds
}

// seedChanged takes down what a worker found. A worker that was ended meanwhile has no row any more.
func (b *board) seedChanged(state seedState) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if _, ok := b.seeds[state.name]; !ok {
		return
	}
	b.seeds[state.name] = state
	for _, known := range b.outcomes {
		b.tell(known, gatherAfterSeed)
	}
}

func (b *board) tell(known outcome, after time.Duration) {
	if b.queue != nil {
		b.queue.AddAfter(known.request, after)
	}
}

// facts are what the status of one catalogue is made of; false where no pass has seen this generation yet.
func (b *board) facts(uid types.UID, generation int64) (outcome, []seedState, bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	known, ok := b.outcomes[uid]
	if !ok || known.generation != generation {
		return outcome{}, nil, false
	}
	rows := make([]seedState, 0, len(b.targets))
	for _, name := range b.targets {
		rows = append(rows, b.seeds[name])
	}
	return known, rows, true
}

func outcomeOf(reading *reading, p *pass, part *contribution) outcome {
	object := reading.object
	found := outcome{
		request:    reconcile.Request{NamespacedName: types.NamespacedName{Namespace: object.Namespace, Name: object.Name}},
		generation: object.Generation,
		kept:       reading.refusal != nil && reading.source != nil,
		conflicts:  part.sortedConflicts(), secretProblems: map[string]string{},
	}
	if owner := metav1.GetControllerOf(object); reading.parent() != "" {
		found.parent = owner.Name
	}
	found.leave = reading.leave
	if reading.leaveProblem != nil {
		found.leaveProblem = reading.leaveProblem.Error()
	}
	if reading.refusal != nil {
		found.reason, found.refusal = reading.reason, reading.refusal.Error()
	}
	if part == nil {
		return found
	}
	found.digests, found.secrets, found.tooLarge = part.digests, part.secrets, part.tooLarge
	for _, name := range part.secrets {
		if problem := p.secrets.problems[name]; problem != "" {
			found.secretProblems[name] = problem
		}
	}
	return found
}
