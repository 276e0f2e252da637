package installer

import (
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/health"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/target"
)

// AG20: What add-ons of Custom catalogues have looked at, however dear it is, leaves those of Core catalogues in the same cluster their
// share of the time.
func TestCustomAddonsTakeNoTimeFromCoreOnes(t *testing.T) {
	clock := time.Unix(0, 0)
	installer := &Installer{Rules: health.NewPrograms(func() time.Time {
		clock = clock.Add(time.Second)
		return clock
	})}
	about := map[string]any{"status": map[string]any{"ready": true}}
	judge := func(isCore bool) status.Status {
		record := &revision.Record{
			Core: isCore, Inventory: ownership.Inventory{{Key: ownership.Key{Kind: "ConfigMap", Name: "a"}}},
			Health: &v1.HealthCheck{Mode: v1.HealthByRules, Rules: []v1.HealthRule{
				{APIVersion: "v1", Kind: "ConfigMap", Healthy: "self.status.ready"},
			}},
		}
		pass := installer.Pass(&State{Loaded: true, Record: record}, "cluster-a", Asked{}, Seed{})
		pass.Cluster = target.Ref{Namespace: "cluster-a", Name: "a"}
		is, _ := pass.standard().Judge.Judge(t.Context(), 0, about)
		return is
	}
	for range 10 {
		if judge(false) != status.CurrentStatus {
			break
		}
	}
	if is := judge(false); is != health.RuleFailed {
		t.Fatalf("what is dear is %s", is)
	}
	if is := judge(true); is != status.CurrentStatus {
		t.Errorf("the core add-on's object is %s", is)
	}
}
