package gitcatalogue

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
)

func (r *Reconciler) list(ctx context.Context, f *facts) *loop.Outcome {
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
