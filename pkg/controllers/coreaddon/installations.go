package coreaddon

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/waves"
)

// listInstallations reads the installations. Those of others are shared with the cache and only
// read: a cluster may have hundreds, of which a pass reads the name.
func (r *Reconciler) listInstallations(ctx context.Context, f *facts) loop.Outcome {
	var list v1.AddonInstallationList
	if err := r.Client.List(ctx, &list, cluster.InstallationsOf(f.asked), client.UnsafeDisableDeepCopy); err != nil {
		return failed(fmt.Errorf("listing the installations of namespace %q: %w", f.asked.Namespace, err))
	}
	if f.installations = list.Items; f.asked.Name != "" { // a KKP Cluster's may name it, once it is found
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

// confirm asks the API server where the answer to a write is not known; and for what was written a
// while ago and the cache does not have: it may have come and gone between two of the cache's
// events.
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
