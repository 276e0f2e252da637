package installing

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/bench/bar"
	"github.com/trellis-addons/trellis/test/expect"
)

const (
	// steadyTime is how long nothing is asked for.
	steadyTime = 3 * time.Minute
	// idleTime is how long the API server is measured without the manager; what it used is scaled up to steadyTime.
	idleTime = steadyTime / idleShare
	// idleShare is the part of steadyTime that idleTime is.
	idleShare = 2
)

// BenchmarkSteadyState has 200 installations, asks for nothing for three minutes, and then does the same without the manager:
// what the API server uses above that is the manager's doing. Drift is looked for every minute, ten times as often as by
// default, since the measurements that the bars come from had that interval.
func BenchmarkSteadyState(b *testing.B) {
	w := newWorld(b)
	if _, err := w.sources.Commit("four", map[string]string{"addon.yaml": addonTemplate}); err != nil {
		b.Fatal(err)
	}
	w.offer(b, "four", &kubermaticv1.Template{Method: kubermaticv1.MethodGoTemplate}, w.gitSource("four"))
	w.startManager(b, "--drift-interval", "1m", "--source-interval", "1m")
	watching := w.watch(b)
	for b.Loop() {
		w.install(b, watching, "four", names("steady", installations))
		w.expectLooked(b)
		w.calm(b)
		w.manager.profile()
		steady := w.rest(b, steadyTime)
		w.manager.profile()
		memory := UsageOf(b, w.manager.process.PID())
		w.stopManager(b)
		idle := w.rest(b, idleTime)

		b.Logf("%d installations in %s: %s; %s", installations, steadyTime, seconds(steady.cost), steady.calls.text(1))
		b.Logf("without the manager, in %s: %s; %s", idleTime, seconds(idle.cost), idle.calls.text(1))
		manager, above := steady.cost[managerProcess], steady.cost[serverProcess]-idleShare*idle.cost[serverProcess]
		b.Logf("peak memory of the manager: %d MiB", memory.peak>>20)
		bar.Time(b, "manager-s", manager.Seconds(), 1)
		bar.Time(b, "apiserver-s-above-idle", above.Seconds(), 2)
		bar.Exactly(b, "writes", float64(steady.calls.writes()), 0)
		if steady.calls["LIST deployments"] == 0 {
			b.Error("nobody looked for drift")
		}
	}
}

// expectLooked waits for the first look for drift: what it found is written into each status, once.
func (w *world) expectLooked(b *testing.B) {
	b.Helper()
	expect.Eventually(b, patience, func() error {
		var list kubermaticv1.AddonInstallationList
		if err := w.seed.List(b.Context(), &list, client.InNamespace(clusterNamespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if meta.FindStatusCondition(list.Items[i].Status.Conditions, kubermaticv1.ConditionDrifted) == nil {
				return fmt.Errorf("nobody has looked at %q yet", list.Items[i].Name)
			}
		}
		return nil
	})
}

// rest measures a time in which nothing is asked for.
func (w *world) rest(b *testing.B, during time.Duration) outcome {
	b.Helper()
	return w.measure(b, installations, func() time.Time {
		pause(b, during)
		return time.Now()
	})
}
