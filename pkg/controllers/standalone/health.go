package standalone

import (
	"context"
	"strings"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// probeTheAPIServer reports the result of the last probe. A known version stays while the API server is down, or the
// kubeconfig leads to another user cluster.
func (r *Reconciler) probeTheAPIServer(ctx context.Context, f *facts) *loop.Outcome {
	finding, known := r.prober.ask(question{
		cluster:   target.Ref{Namespace: f.namespace(), Name: f.cluster.Name, UID: f.cluster.UID},
		confirmed: f.cluster.Annotations[v1.AnnotationConfirmCluster], secretVersion: f.secretVersion,
	})
	if !known {
		return waiting("reading the version of the API server", r.Interval)
	}
	status := &f.cluster.Status
	status.ExtendedHealth.APIServer = kkpv1.HealthDown
	if finding.answers {
		status.ExtendedHealth.APIServer = kkpv1.HealthUp
	}
	if finding.version != "" {
		status.Versions.ControlPlane = strings.TrimPrefix(finding.version, "v")
	}
	return &loop.Outcome{Kind: loop.Done, Recheck: r.Interval}
}
