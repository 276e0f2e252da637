package standalone

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// facts of one pass.
type facts struct {
	cluster *kkpv1.Cluster
	// secretVersion is the resourceVersion of the kubeconfig Secret.
	secretVersion string
}

// namespace is the Cluster's on the seed, with or without a status that says so.
func (f *facts) namespace() string { return cluster.NamespacePrefix + f.cluster.Name }

func (r *Reconciler) steps() []loop.Step[facts] {
	return []loop.Step[facts]{
		{Name: "name", Run: nameNamespace},         // say which namespace it will be, before it exists
		{Name: "namespace", Run: r.makeNamespace},  // make it, or wait for a former one to go
		{Name: "kubeconfig", Run: r.findSecret},    // wait for the kubeconfig
		{Name: "health", Run: r.probeTheAPIServer}, // version and health, as a probe found them
	}
}

func (r *Reconciler) deletionSteps() []loop.Step[facts] {
	return []loop.Step[facts]{
		{Name: "namespace", Run: r.removeNamespace}, // delete it and wait until it is gone
	}
}

func stalled(message string) loop.Outcome {
	return loop.Stalled{Condition: v1.ConditionReady, Reason: v1.ReasonClusterNotReady, Message: message}
}

func waiting(message string, recheck time.Duration) loop.Outcome {
	return loop.Waiting{Condition: v1.ConditionReady, Reason: v1.ReasonClusterNotReady, Message: message, Recheck: recheck}
}

// failure logs, since a Cluster's status has no place for it.
func failure(ctx context.Context, err error) loop.Outcome {
	log.FromContext(ctx).Error(err, "Could not bring the Cluster up to date")
	return loop.RetryAt{Condition: v1.ConditionReady, Reason: v1.ReasonFailed, Message: err.Error(), After: deletedRecheck}
}
