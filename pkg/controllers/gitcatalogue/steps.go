package gitcatalogue

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/controllers/gitcatalogue/documents"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// recheck is when a pass is made without being asked. The store forgets after an hour what nobody asks for.
const recheck = 15 * time.Minute

// facts are what one pass knows; each step adds to them.
type facts struct {
	object *v1.AddonCatalogue
	memory *memory
	// have are the generated catalogues that are there, by name. They are shared with the cache and only read.
	have     map[string]*v1.AddonCatalogue
	snapshot fetch.Snapshot
	content  *documents.Content
	plan     plan
	// taken is set when the content's add-ons are those that are there.
	taken bool
}

func (r *Reconciler) steps() []loop.Step[facts] {
	return []loop.Step[facts]{
		{Name: "survey", Run: r.survey},     // the generated catalogues that are there
		{Name: "fetch", Run: r.fetch},       // the content, from the store
		{Name: "settle", Run: r.settle},     // the same content again, and nobody changed what came of it: done
		{Name: "read", Run: r.read},         // files become add-ons
		{Name: "plan", Run: r.plan},         // what to write and what to remove
		{Name: "approve", Run: r.approve},   // much that goes needs a word
		{Name: "rehearse", Run: r.rehearse}, // no write fails for its content
		{Name: "write", Run: r.write},       // what is new or differs
		{Name: "remove", Run: r.remove},     // what the commit does not have
		{Name: "remember", Run: r.remember}, // what came of the content
	}
}

// leavingSteps are for a catalogue that is not in git, or not any more.
func (r *Reconciler) leavingSteps() []loop.Step[facts] {
	return []loop.Step[facts]{
		{Name: "survey", Run: r.survey},
		{Name: "remove", Run: r.removeAll},
	}
}

// memory is what a pass leaves for the next one.
type memory struct {
	// asked is the value of annotation reconcile-at that was answered.
	asked string
	// announced is the commit that the last event told.
	announced string
	// digest of the content that was taken for that generation, and the digests of what came of it, by name.
	digest     string
	generation int64
	children   map[string]string
	versions   int32
	// taken are add-ons of that content, by name of their catalogue, that did not come since somebody else has the name.
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
	if m.kept == nil {
		m.kept = map[types.NamespacedName]*memory{}
	}
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

// survey lists what was generated from the catalogue.
func (r *Reconciler) survey(ctx context.Context, f *facts) loop.Outcome {
	var list v1.AddonCatalogueList
	err := r.cached.List(ctx, &list, client.InNamespace(r.options.Namespace),
		client.MatchingLabels{v1.LabelRole: v1.RoleGenerated}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return failed("listing generated catalogues", err)
	}
	f.have = map[string]*v1.AddonCatalogue{}
	for i := range list.Items {
		if child := &list.Items[i]; metav1.IsControlledBy(child, f.object) && child.DeletionTimestamp == nil {
			f.have[child.Name] = child
		}
	}
	return nil
}

// settle ends a pass over content that was taken before.
func (r *Reconciler) settle(ctx context.Context, f *facts) loop.Outcome {
	known := f.memory
	if known.digest != f.snapshot.Digest || known.generation != f.object.Generation || len(known.children) != len(f.have) {
		return nil
	}
	for name, child := range f.have {
		if known.children[name] == "" || known.children[name] != stamp(child) {
			return nil
		}
	}
	if !r.stillTaken(ctx, f) {
		return nil
	}
	return f.take(ctx)
}

// take ends a pass whose content is that of the generated catalogues. A source that can't be reached is told all the same.
func (f *facts) take(ctx context.Context) loop.Outcome {
	f.taken = true
	if f.snapshot.Stale != nil {
		return fetchOutcome(ctx, f, f.snapshot.Stale)
	}
	if len(f.memory.taken) > 0 {
		return f.takenOutcome()
	}
	return loop.Done{Recheck: recheck}
}

func (r *Reconciler) remember(ctx context.Context, f *facts) loop.Outcome {
	f.memory.digest, f.memory.generation = f.snapshot.Digest, f.object.Generation
	f.memory.children, f.memory.versions, f.memory.taken = map[string]string{}, f.plan.versions, f.plan.taken
	r.memories.await(client.ObjectKeyFromObject(f.object), f.plan.taken)
	for _, child := range f.plan.children {
		f.memory.children[child.name] = child.digest
	}
	return f.take(ctx)
}

// outrun is when to come back after the cache was behind: it knows by then.
const outrun = time.Second

// failed is the outcome of a call to the master's API server that failed.
func failed(what string, err error) loop.Outcome {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return loop.Waiting{
			Condition: v1.ConditionFetched, Reason: v1.ReasonFetching, Message: "the generated catalogues are being written", Recheck: outrun,
		}
	}
	return loop.RetryAt{
		Condition: v1.ConditionFetched, Reason: v1.ReasonFailed, After: 2 * time.Second,
		Message: fmt.Sprintf("%s failed and is tried again: %s", what, apiReason(err)),
	}
}
