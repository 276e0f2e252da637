package sandbox

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/charts"
)

// chartOf is the chart that would install a control plane's manager.
func chartOf(cluster string) string {
	if cluster == Master {
		return "trellis-master"
	}
	return "trellis-seed"
}

// admit puts the charts' policies and webhooks onto the master and the seeds. The managers serve the webhooks on this
// machine, each at a port that stays over its restarts.
func (s *Sandbox) admit(ctx context.Context) error {
	s.webhooks = map[string]string{}
	for _, cluster := range append([]string{Master}, Seeds()...) {
		port, err := s.ports.Free("webhooks " + cluster)
		if err != nil {
			return fmt.Errorf("finding a port for the webhooks: %w", err)
		}
		s.webhooks[cluster] = fmt.Sprintf("127.0.0.1:%d", port)
		objects, err := charts.Admission(chartOf(cluster), Namespace, s.webhooks[cluster])
		if err != nil {
			return err
		}
		for _, object := range objects {
			if err := s.create(ctx, cluster, client.Object(object)); err != nil {
				return err
			}
		}
	}
	return nil
}

// admissionFlags have a manager serve its webhooks where they are asked.
func (s *Sandbox) admissionFlags(cluster string) []string {
	return charts.AdmissionFlags(chartOf(cluster), Namespace, s.webhooks[cluster])
}
