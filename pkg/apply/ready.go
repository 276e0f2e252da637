package apply

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// patientLooks is how often a definition that is not served yet is not asked why: most are served a moment later.
const patientLooks = 2

// checkReady looks whether an object that others stand on is there: a CustomResourceDefinition has to be established. A
// Namespace is active unless it is being deleted, which its metadata told; everything else is ready when it is written.
// Definitions are served once they are established, which costs less to ask than reading one of several hundred KiB; one
// that is not served after some looks is read, for the reason.
func (w *writer) checkReady(ctx context.Context, it *item) error {
	if !isCRD(it.object) || w.serves(ctx, it.object) {
		it.ready = true
		return nil
	}
	if it.looks++; it.looks <= patientLooks && definedResource(it.object).Version != "" {
		w.awaitEstablishment(it, "")
		return nil
	}
	live, err := readWhole(ctx, w.target.Dynamic.Resource(definitions), place{name: it.key.Name})
	if apierrors.IsNotFound(err) {
		it.vanish()
		it.wait(kubermaticv1.ReasonWaitingForStage, fmt.Sprintf("%s is gone again, and is made anew", it.key))
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %q: %w", it.key, err)
	}
	established, trouble := establishment(live)
	switch {
	case live.GetDeletionTimestamp() != nil:
		it.vanish()
		it.wait(kubermaticv1.ReasonWaitingForStage, fmt.Sprintf("%s is being deleted, and is made anew when it is gone%s",
			it.key, heldBy(live.GetFinalizers())))
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
	where := definedResource(definition)
	if where.Version == "" {
		return false
	}
	_, err := w.target.Metadata.Resource(where).List(ctx, metav1.ListOptions{Limit: 1})
	return err == nil
}

// establishment reads the conditions of a CustomResourceDefinition.
func establishment(definition *unstructured.Unstructured) (established bool, trouble string) {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, condition := range conditions {
		fields, _ := condition.(map[string]any)
		state, _ := fields["status"].(string)
		switch fields["type"] {
		case "Established":
			established = state == string(metav1.ConditionTrue)
		case "NamesAccepted":
			if state == string(metav1.ConditionFalse) {
				trouble = ": its names are not accepted" + saidBy(fields)
			}
		case "NonStructuralSchema":
			if state == string(metav1.ConditionTrue) {
				trouble = ": its schema is not structural" + saidBy(fields)
			}
		}
	}
	return established, trouble
}

// saidBy is a condition's reason and message. Those of a definition hold its names and paths.
func saidBy(condition map[string]any) string {
	reason, _ := condition["reason"].(string)
	message, _ := condition["message"].(string)
	return ", " + cutText(strings.TrimSuffix(reason+": "+message, ": "))
}

// findNamespace looks for the namespace of an object.
func (w *writer) findNamespace(ctx context.Context, it *item) error {
	live, err := resourceClient(w.target, resource{GroupVersionResource: namespaces}, "").Get(ctx, it.key.Namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		it.wait(kubermaticv1.ReasonNamespaceMissing, missingNamespace(it.key.Namespace))
	case err != nil:
		return fmt.Errorf("reading namespace %q: %w", it.key.Namespace, err)
	case live.DeletionTimestamp != nil:
		it.wait(kubermaticv1.ReasonNamespaceTerminating, fmt.Sprintf("namespace %q is being deleted%s",
			it.key.Namespace, heldBy(live.Finalizers)))
	}
	return nil
}
