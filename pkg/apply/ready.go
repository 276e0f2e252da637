package apply

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/lru"
)

// patientLooks is how often a definition that is not served yet is not asked why: most are served a moment later.
const patientLooks = 2

// checkReady looks whether an object that others stand on is there: a CustomResourceDefinition has to be established. A
// Namespace is active unless it is being deleted, which its metadata told; everything else is ready when it is written.
// Definitions are served once they are established, which costs less to ask than reading one of several hundred KiB; one
// that is not served after some looks is read, for the reason.
func (w *writer) checkReady(ctx context.Context, it *item) error {
	if !calls.IsCRD(it.object) || w.serves(ctx, it.object) {
		it.ready = true
		return nil
	}
	if it.reads++; it.reads <= patientLooks && calls.DefinedResource(it.object).Version != "" {
		w.awaitEstablishment(it, "")
		return nil
	}
	live, err := calls.ReadWhole(ctx, w.target.Dynamic.Resource(calls.Definitions), calls.Place{Name: it.key.Name})
	if apierrors.IsNotFound(err) {
		it.vanish()
		it.wait(kubermaticv1.ReasonWaitingForStage, fmt.Sprintf("%s is gone again, and is made anew", it.key))
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %q: %w", it.key, err)
	}
	established, trouble := calls.Establishment(live)
	switch {
	case live.GetDeletionTimestamp() != nil:
		it.vanish()
		it.wait(kubermaticv1.ReasonWaitingForStage, fmt.Sprintf("%s is being deleted, and is made anew when it is gone%s",
			it.key, calls.HeldBy(live.GetFinalizers())))
	case established:
		it.ready = true
	default:
		w.awaitEstablishment(it, trouble)
	}
	return nil
}

// vanish has an object that is no more, or is on its way out, made anew.
func (i *item) vanish() { i.kept, i.gone, i.done, i.used = false, true, false, false }

// establishWithin is how long a definition may take until the wait is called what it is. It goes on.
const establishWithin = time.Minute

// awaitEstablishment waits for a definition, and says after a while that it won't come by itself.
func (w *writer) awaitEstablishment(it *item, trouble string) {
	if it.since.IsZero() {
		it.since = w.now
	}
	if w.now.Sub(it.since) < establishWithin {
		it.wait(kubermaticv1.ReasonWaitingForStage, fmt.Sprintf("%s is not established yet%s", it.key, trouble))
		return
	}
	it.wait(kubermaticv1.ReasonNotEstablished, fmt.Sprintf("%s is not established after %s%s: what depends on it waits",
		it.key, establishWithin, trouble))
}

// serves says whether the objects of a definition can be listed.
func (w *writer) serves(ctx context.Context, definition *unstructured.Unstructured) bool {
	where := calls.DefinedResource(definition)
	if where.Version == "" {
		return false
	}
	_, err := w.target.Metadata.Resource(where).List(ctx, metav1.ListOptions{Limit: 1})
	return err == nil
}

func (w *writer) findNamespace(ctx context.Context, it *item) error {
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

// standsFor is how long a namespace that was seen counts as standing. One that goes meanwhile shows at the next write into it.
const standsFor = 10 * time.Second

// Namespaces knows which namespaces of a user cluster stood a moment ago: rollouts that begin together ask once for each.
type Namespaces struct{ seen *lru.Cache[string, struct{}] }

// NewNamespaces knows of none; now tells the time.
func NewNamespaces(now func() time.Time) *Namespaces {
	return &Namespaces{seen: lru.New[string, struct{}](0, now)}
}

// stood says whether a namespace was seen a moment ago. Those of nil never were.
func (n *Namespaces) stood(name string) bool {
	if n == nil {
		return false
	}
	_, seen := n.seen.Get(name)
	return seen
}

func (n *Namespaces) saw(name string) {
	if n != nil {
		n.seen.Put(name, struct{}{}, standsFor)
	}
}
