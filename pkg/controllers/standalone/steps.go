package standalone

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
)

// facts are those of one reconciliation.
type facts struct {
	cluster *kkpv1.Cluster
	// secretVersion is the resourceVersion of the kubeconfig Secret.
	secretVersion string
}

// namespace is the Cluster's on the seed, even if the status has no name yet.
func (f *facts) namespace() string { return cluster.NamespacePrefix + f.cluster.Name }

func (r *Reconciler) steps() []loop.Step[facts] {
	return []loop.Step[facts]{
		{Name: "name", Run: nameNamespace},         // write the namespace's name, before it exists
		{Name: "namespace", Run: r.makeNamespace},  // create it, or wait for the deletion of a previous one
		{Name: "kubeconfig", Run: r.findSecret},    // wait for the kubeconfig
		{Name: "health", Run: r.probeTheAPIServer}, // version and health, by the last probe
	}
}

func (r *Reconciler) deletionSteps() []loop.Step[facts] {
	return []loop.Step[facts]{
		{Name: "namespace", Run: r.removeNamespace}, // delete it and wait until it is deleted
	}
}

func stalled(message string) *loop.Outcome {
	return loop.Stall(v1.ConditionReady, v1.ReasonClusterNotReady, message)
}

func waiting(message string, recheck time.Duration) *loop.Outcome {
	return loop.Wait(v1.ConditionReady, v1.ReasonClusterNotReady, message, recheck)
}

// failure logs the error, since a Cluster's status has no field for it.
func failure(ctx context.Context, err error) *loop.Outcome {
	log.FromContext(ctx).Error(err, "Could not bring the Cluster up to date")
	return &loop.Outcome{
		Kind: loop.RetryAt, Condition: v1.ConditionReady, Reason: v1.ReasonFailed, Message: err.Error(), Recheck: deletedRecheck,
	}
}
