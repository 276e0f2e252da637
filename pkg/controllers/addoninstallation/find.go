package addoninstallation

import (
	"context"
	"errors"
	"fmt"
	"time"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/target"
)

const (
	// clusterRecheck is how often a missing or unready Cluster is looked for, besides its events.
	clusterRecheck = time.Minute
	// atOnce is the shortest wait.
	atOnce = time.Millisecond
)

// locate finds the one Cluster whose namespace this is, and what hangs on it: every pass begins with that, a removal too. A Cluster
// that comes back over the same user cluster has the same IDs as before.
func (r *Reconciler) locate(ctx context.Context, f *facts) error {
	f.now = time.Now()
	found, err := r.Finder.Find(ctx, target.InstalledIn(f.installation))
	if err != nil {
		return err
	}
	origin, err := r.Connections.Origin(ctx, found.Ref)
	if err != nil {
		return err
	}
	f.cluster = found
	f.owner = ownership.Owner{ClusterUID: origin, Installation: f.installation.Name}
	f.memory.belongTo(f.owner)
	return nil
}

// findCluster finds the Cluster of a living installation and sees whether there is something to do. The Cluster's identity goes
// into the status, with whatever the pass says there; until that is written, release records tell it. Of core add-ons, and
// where another Cluster came, it is written before anything else happens: their protection, and a removal that finds no Cluster, go
// by the status.
func (r *Reconciler) findCluster(ctx context.Context, f *facts) loop.Outcome {
	if err := r.locate(ctx, f); err != nil {
		return unknownCluster(err)
	}
	if !cluster.BelongsTo(f.cluster, r.Options.WorkerName) {
		return loop.NotMine{}
	}
	identity := f.cluster.Identity()
	known := f.installation.Status.Cluster
	f.installation.Status.Cluster = &identity
	if known == nil && f.installation.Spec.CoreAddon || known != nil && *known != identity {
		return checkpoint(kubermaticv1.ConditionReady, fmt.Sprintf("it belongs to cluster %q", f.cluster.Name))
	}
	switch {
	case f.cluster.Deleted:
		return waiting(kubermaticv1.ReasonClusterNotReady, fmt.Sprintf("cluster %q is being deleted", f.cluster.Name), 0)
	case f.cluster.Paused:
		f.memory.watched = time.Time{}
		return pausedCluster(f)
	case f.installation.Spec.Paused:
		f.memory.watched = time.Time{}
		return waiting(kubermaticv1.ReasonPaused, "the installation is paused: set spec.paused to false to go on", 0)
	case f.cluster.KubernetesVersion == "":
		return waiting(kubermaticv1.ReasonClusterNotReady, fmt.Sprintf("cluster %q has no version yet", f.cluster.Name), clusterRecheck)
	}
	return nil
}

func pausedCluster(f *facts) loop.Outcome {
	return waiting(kubermaticv1.ReasonPaused, fmt.Sprintf("cluster %q is paused: set its spec.pause to false", f.cluster.Name), 0)
}

func unknownCluster(err error) loop.Outcome {
	var unknown *cluster.UnknownError
	if errors.As(err, &unknown) {
		return waiting(kubermaticv1.ReasonClusterUnknown, unknown.Error(), clusterRecheck)
	}
	return failed(err)
}
