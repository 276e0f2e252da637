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

// How long status changes are gathered into one write. A refused spec is reported at once.
const (
	gatherAfterPass = 500 * time.Millisecond
	gatherAfterSeed = 75 * time.Millisecond
)

// Findings are what a pass found out about one catalogue.
type Findings struct {
	Name types.NamespacedName
	// Generation is the present one, Read the one that counts. Waits says why there is a later one, of it or of what is generated
	// from it; empty: there is none.
	Generation, Read int64
	Waits            string
	// Refusal is why the present spec does not count, with its reason; empty where it does.
	Reason, Refusal string
	// Kept says that the last valid spec is used in its place.
	Kept bool
	// Parent is the catalogue in git that this one was generated from; empty: none.
	Parent string
	// TooLarge names the merged add-ons that were refused, and says that there is no room for the catalogue.
	TooLarge  []string
	Conflicts []v1.CatalogueConflict
	// Digests of the merged add-ons with a part of the catalogue.
	Digests map[string]string
	// Secrets that its entries name, and their problems on the master.
	Secrets        []string
	SecretProblems map[string]string
	// NotAllowed says which Secrets are not for it, SecretWarnings which are only since it used them before.
	NotAllowed, SecretWarnings []string
	// Sources are those of its versions.
	Sources []catalogue.SourceUse
	// Leave are the versions that clusters have to leave; LeaveProblem is why it is unreadable.
	Leave        catalogue.Leave
	LeaveProblem string
}

// ledger has what passes and workers found, for the status controller.
type ledger struct {
	mutex      sync.Mutex
	catalogues map[types.UID]Findings
	// seeds that exist, in the order of the last pass.
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

// Passed records what a pass found out about all catalogues, and which seeds exist.
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

// SeedChanged records what a worker found, if its seed still exists.
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

// facts are what is known of a catalogue and all seeds; false before a pass saw the generation.
func (l *ledger) facts(object *v1.AddonCatalogue) (facts, bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	known, ok := l.catalogues[object.UID]
	if !ok || known.Generation != object.Generation {
		return facts{}, false
	}
	return facts{Findings: known, seeds: slices.Clone(l.seeds)}, true
}
