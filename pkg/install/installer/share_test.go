package installer

import (
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue/health"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// AG20: However expensive the rules of add-ons of Custom catalogues are, those of Core catalogues in the same cluster
// keep their share of the time.
func TestCustomAddonsTakeNoTimeFromCoreOnes(t *testing.T) {
	clock := time.Unix(0, 0)
	installer := &Installer{Rules: health.NewPrograms(func() time.Time {
		clock = clock.Add(time.Second)
		return clock
	})}
	about := map[string]any{"status": map[string]any{"ready": true}}
	evaluate := func(isCore bool) status.Status {
		record := &revision.Record{
			Core: isCore, Inventory: ownership.Inventory{{Key: ownership.Key{Kind: "ConfigMap", Name: "a"}}},
			Health: &v1.HealthCheck{Mode: v1.HealthByRules, Rules: []v1.HealthRule{
				{APIVersion: "v1", Kind: "ConfigMap", Healthy: "self.status.ready"},
			}},
		}
		run := installer.NewRun(&State{Loaded: true, Record: record}, "cluster-a", Asked{}, Seed{})
		run.Cluster = target.Ref{Namespace: "cluster-a", Name: "a"}
		is, _ := run.standard().Evaluator.Evaluate(t.Context(), 0, about)
		return is
	}
	for range 10 {
		if evaluate(false) != status.CurrentStatus {
			break
		}
	}
	if is := evaluate(false); is != health.RuleFailed {
		t.Fatalf("what is dear is %s", is)
	}
	if is := evaluate(true); is != status.CurrentStatus {
		t.Errorf("the core add-on's object is %s", is)
	}
}
