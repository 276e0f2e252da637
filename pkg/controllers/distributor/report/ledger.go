package report

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/seed"
)

// How long status changes are gathered: seeds answer within a moment of each other, and all of it
// is one write. A refused spec is reported at once.
const (
	gatherAfterPass = 500 * time.Millisecond
	gatherAfterSeed = 75 * time.Millisecond
)

// Findings are what a pass found out about one catalogue.
type Findings struct {
	Name       types.NamespacedName
	Generation int64
	// Refusal is why the present spec does not count, with its reason; empty where it does.
	Reason, Refusal string
	// Kept is set when the last valid spec stands in for the present one.
	Kept bool
	// Parent is the name of the catalogue in git that this one was generated from.
	Parent string
	// TooLarge names the merged add-ons that were refused.
	TooLarge  []string
	Conflicts []v1.CatalogueConflict
	// Digests of the merged add-ons that the catalogue has a part in.
	Digests map[string]string
	// Secrets that its entries name, and what is wrong with them on the master.
	Secrets        []string
	SecretProblems map[string]string
	// Leave are the versions that the catalogue has clusters leave; LeaveProblem is why its
	// annotation can't be read.
	Leave        catalogue.Leave
	LeaveProblem string
}

// ledger is where passes and workers leave what they know for the status controller.
type ledger struct {
	mutex      sync.Mutex
	catalogues map[types.UID]Findings
	// seeds in the order of the last pass, of those that exist.
	seeds []seed.State
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// attach gives the ledger the queue of the status controller.
func (l *ledger) attach(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.queue = queue
	for _, known := range l.catalogues {
		l.ask(known, 0)
	}
	return nil
}

// Passed takes down what a pass found out about all catalogues, and which seeds there are: rows of
// Seeds that went are dropped.
func (l *ledger) Passed(catalogues map[types.UID]Findings, seeds []string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	before := l.seeds
	l.catalogues, l.seeds = catalogues, make([]seed.State, 0, len(seeds))
	for _, name := range seeds {
		state := seed.State{Name: name, Problem: "not reached yet"}
		if at := indexOf(before, name); at >= 0 {
			state = before[at]
		}
		l.seeds = append(l.seeds, state)
	}
	for _, known := range catalogues {
		if known.Refusal != "" {
			l.ask(known, 0)
			continue
		}
		l.ask(known, gatherAfterPass)
	}
}

// SeedChanged takes down what a worker found. A worker that was ended meanwhile has no row.
func (l *ledger) SeedChanged(state seed.State) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	at := indexOf(l.seeds, state.Name)
	if at < 0 {
		return
	}
	l.seeds[at] = state
	for _, known := range l.catalogues {
		l.ask(known, gatherAfterSeed)
	}
}

func indexOf(seeds []seed.State, name string) int {
	return slices.IndexFunc(seeds, func(state seed.State) bool { return state.Name == name })
}

func (l *ledger) ask(known Findings, after time.Duration) {
	if l.queue != nil {
		l.queue.AddAfter(reconcile.Request{NamespacedName: known.Name}, after)
	}
}

// facts are what is known of one catalogue and all seeds; false before a pass has seen the generation.
func (l *ledger) facts(object *v1.AddonCatalogue) (facts, bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	known, ok := l.catalogues[object.UID]
	if !ok || known.Generation != object.Generation {
		return facts{}, false
	}
	return facts{Findings: known, seeds: slices.Clone(l.seeds)}, true
}
