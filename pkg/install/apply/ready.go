package apply

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/lru"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
)

// silentReads is how many reads pass before the reason is read: most definitions are served soon.
const silentReads = 2

// checkReady checks that a CRD is established; other objects are ready once written. Listing its objects costs less
// than reading a definition of several hundred KiB, so that is tried first.
func (w *writer) checkReady(ctx context.Context, it *item) error {
	if !calls.IsCRD(it.object) || w.serves(ctx, it.object) {
		it.ready = true
		return nil
	}
	if it.reads++; it.reads <= silentReads && calls.DefinedResource(it.object).Version != "" {
		w.awaitEstablishment(it, "")
		return nil
	}
	live, err := calls.ReadWhole(ctx, w.target.Dynamic.Resource(calls.Definitions), calls.Place{Name: it.key.Name})
	if apierrors.IsNotFound(err) {
		it.recreate()
		it.wait(kubermaticv1.ReasonWaitingForStage, fmt.Sprintf("%s was deleted after it was applied, and is created again", it.key))
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %q: %w", it.key, err)
	}
	established, trouble := calls.Establishment(live)
	switch {
	case live.GetDeletionTimestamp() != nil:
		it.recreate()
		it.waitForEnd(kubermaticv1.ReasonWaitingForStage, live.GetFinalizers())
	case established:
		it.ready = true
	default:
		w.awaitEstablishment(it, trouble)
	}
	return nil
}

func (i *item) recreate() { i.unchanged, i.gone, i.done, i.used = false, true, false, false }

const establishWithin = time.Minute

func (w *writer) awaitEstablishment(it *item, trouble string) {
	if it.since.IsZero() {
		it.since = w.now
	}
	if w.now.Sub(it.since) < establishWithin {
		it.wait(kubermaticv1.ReasonWaitingForStage, fmt.Sprintf("%s is not established yet%s", it.key, trouble))
		return
	}
	it.wait(kubermaticv1.ReasonNotEstablished, fmt.Sprintf("%s is not established after %s%s: objects that depend on it wait",
		it.key, establishWithin, trouble))
}

func (w *writer) serves(ctx context.Context, definition *unstructured.Unstructured) bool {
	where := calls.DefinedResource(definition)
	if where.Version == "" {
		return false
	}
	_, err := w.target.Metadata.Resource(where).List(ctx, metav1.ListOptions{Limit: 1})
	return err == nil
}

func (w *writer) checkNamespace(ctx context.Context, it *item) error {
	all := calls.ClientOf(w.target, calls.Resource{GroupVersionResource: calls.Namespaces}, "")
	live, err := all.Get(ctx, it.key.Namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		it.wait(kubermaticv1.ReasonNamespaceMissing, calls.MissingNamespace(it.key.Namespace))
	case err != nil:
		return fmt.Errorf("reading namespace %q: %w", it.key.Namespace, err)
	case live.DeletionTimestamp != nil:
		it.wait(kubermaticv1.ReasonNamespaceTerminating, fmt.Sprintf("namespace %q is being deleted%s",
			it.key.Namespace, calls.HeldBy(live.Finalizers)))
	}
	return nil
}

// seenFor is how long a namespace counts as existing. A write shows its deletion.
const seenFor = 10 * time.Second

// Namespaces caches which namespaces of a user cluster exist, for rollouts that begin together.
type Namespaces struct{ seen *lru.Cache[string, struct{}] }

// NewNamespaces is an empty cache; now returns the time.
func NewNamespaces(now func() time.Time) *Namespaces {
	return &Namespaces{seen: lru.New[string, struct{}](0, now)}
}

func (n *Namespaces) has(name string) bool {
	if n == nil {
		return false
	}
	_, seen := n.seen.Get(name)
	return seen
}

func (n *Namespaces) add(name string) {
	if n != nil {
		n.seen.Put(name, struct{}{}, seenFor)
	}
}
