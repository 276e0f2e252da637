package coreaddon

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// listInstallations reads the installations. Those of others are shared with the cache and only
// read: a cluster may have hundreds, of which a pass reads the name.
func (r *Reconciler) listInstallations(ctx context.Context, f *facts) loop.Outcome {
	var list v1.AddonInstallationList
	if err := r.Client.List(ctx, &list, cluster.InstallationsOf(f.asked), client.UnsafeDisableDeepCopy); err != nil {
		return failed(fmt.Errorf("listing the installations of namespace %q: %w", f.asked.Namespace, err))
	}
	f.installations = r.staging.over(f.asked.Namespace, list.Items)
	for i := range f.installations {
		if !isForeign(&f.installations[i]) {
			f.installations[i] = *f.installations[i].DeepCopy()
		}
	}
	return nil
}
