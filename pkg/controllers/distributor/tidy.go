package distributor

import (
	"context"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/base/loop"
)

// tidy deletes revisions that are not the last any more. Those of deleted catalogues are only forgotten: the garbage
// collector removes them.
func (r *Reconciler) tidy(ctx context.Context, f *facts) *loop.Outcome {
	present := map[types.UID]bool{}
	for _, reading := range f.readings {
		present[reading.object.UID] = true
	}
	last := map[string]bool{}
	maps.DeleteFunc(r.revisions.last, func(uid types.UID, _ savedRevision) bool { return !present[uid] })
	for _, saved := range r.revisions.last {
		last[saved.name] = true
	}
	var left []client.ObjectKey
	for _, key := range r.revisions.old {
		if last[key.Name] {
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
