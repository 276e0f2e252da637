package distributor

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/loop"
)

// tidy drops revisions that are not the last any more, and forgets those of catalogues that went:
// the garbage collector takes these.
func (r *Reconciler) tidy(ctx context.Context, f *facts) loop.Outcome {
	present := map[types.UID]bool{}
	for _, reading := range f.readings {
		present[reading.object.UID] = true
	}
	for uid := range r.revisions.last {
		if !present[uid] {
			delete(r.revisions.last, uid)
		}
	}
	var left []client.ObjectKey
	for _, key := range r.revisions.old {
		if r.isLast(key.Name) {
			continue
		}
		object := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		if err := r.cached.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			f.trouble(fmt.Errorf("deleting ControllerRevision %q: %w", key.Name, err))
			left = append(left, key)
		}
	}
	r.revisions.old = left
	return nil
}

func (r *Reconciler) isLast(name string) bool {
	for _, kept := range r.revisions.last {
		if kept.name == name {
			return true
		}
	}
	return false
}
