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

// How long status changes are collected into one write. A refused spec is reported at once.
const (
	gatherAfterRun  = 500 * time.Millisecond
	gatherAfterSeed = 75 * time.Millisecond
)

// Findings are the distributor's findings about one catalogue.
type Findings struct {
	Name types.NamespacedName
	// Generation is the present generation of the catalogue, and Read the generation that the distributor uses. Waits
	// says why a later generation, of the catalogue or of one generated from it, is not read yet; empty if there is
	// none.
	Generation, Read int64
	Waits            string
	// Refusal is why the present spec does not count, with its reason; empty if it does.
	Reason, Refusal string
	// Kept says that the last valid spec is used in its place.
	Kept bool
	// Parent is the catalogue in git that this one was generated from; empty if there is none.
	Parent string
	// TooLarge names the merged add-ons that were refused, and says that the catalogue does not fit into memory.
	TooLarge  []string
	Conflicts []v1.CatalogueConflict
	// Digests of the merged add-ons to which the catalogue contributes.
	Digests map[string]string
	// Secrets that its entries name, and their problems on the master.
	Secrets        []string
	SecretProblems map[string]string
	// NotAllowed says which Secrets it may not use, SecretWarnings which it may use only because it used them before.
	NotAllowed, SecretWarnings []string
	// Sources are the sources of its versions.
	Sources []catalogue.SourceUse
	// Leave are the versions that clusters must leave; LeaveProblem is why the annotation is unreadable.
	Leave        catalogue.Leave
	LeaveProblem string
}

// ledger has the results of reconciliations and workers, for the status controller.
type ledger struct {
	mutex      sync.Mutex
	catalogues map[types.UID]Findings
	// seeds are the existing ones, in the order of the last reconciliation.
	seeds []seed.State
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// attach sets the queue of the status controller.
func (l *ledger) attach(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.queue = queue
	for _, known := range l.catalogues {
		l.ask(known, 0)
	}
	return nil
}

// Passed records the distributor's findings about all catalogues, and which seeds exist.
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
		l.ask(known, gatherAfterRun)
	}
}

// SeedChanged records a worker's result, if its seed still exists.
func (l *ledger) SeedChanged(state seed.State) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	at := indexOf(l.seeds, state.Name)
	if at < 0 {
		return
	}
	before := l.seeds[at]
	l.seeds[at] = state
	if !before.Reached && !state.Reached && before.Problem == state.Problem {
		return // it is away, as before
	}
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

// facts are the facts about a catalogue and all seeds; false before the distributor has read the generation.
func (l *ledger) facts(object *v1.AddonCatalogue) (facts, bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	known, ok := l.catalogues[object.UID]
	if !ok || known.Generation != object.Generation {
		return facts{}, false
	}
	return facts{Findings: known, seeds: slices.Clone(l.seeds)}, true
}
