package coreaddon

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

// listInstallations reads the installations. Foreign ones are shared with the cache and only read: a cluster may have
// hundreds, and a reconciliation uses only their names.
func (r *Reconciler) listInstallations(ctx context.Context, f *facts) *loop.Outcome {
	var list v1.AddonInstallationList
	if err := r.Client.List(ctx, &list, cluster.InstallationsOf(f.asked), client.UnsafeDisableDeepCopy); err != nil {
		return failed(fmt.Errorf("listing the installations of namespace %q: %w", f.asked.Namespace, err))
	}
	if f.installations = list.Items; f.asked.Name != "" { // a KKP Cluster's installations may name it, once it is found
		f.keepOwn(f.asked)
	}
	if err := r.confirm(ctx, f, f.installations); err != nil {
		return failed(err)
	}
	f.installations = r.staging.over(f.key(), f.installations)
	for i := range f.installations {
		if !isForeign(&f.installations[i]) {
			f.installations[i] = *f.installations[i].DeepCopy()
		}
	}
	return nil
}

// confirm asks the API server about installations whose write had an unknown result, and about those written a while
// ago that the cache does not have: one may have been created and deleted between two events of the cache.
func (r *Reconciler) confirm(ctx context.Context, f *facts, cached []v1.AddonInstallation) error {
	for _, name := range r.staging.unseen(f.key(), cached, r.Clock.Now()) {
		key := client.ObjectKey{Namespace: f.asked.Namespace, Name: name}
		found, err := waves.Ask(ctx, r.Client, r.Reader, key)
		if err != nil {
			f.refused = &refusedWrite{name: name, err: err, isUnasked: true}
			return err
		}
		r.staging.settle(f.key(), name, found, r.Clock.Now())
	}
	return nil
}
