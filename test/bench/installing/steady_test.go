package installing

import (
	"syscall"
	"testing"
	"time"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// steadyTime is how long nothing is asked for.
const steadyTime = 3 * time.Minute

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
		w.calm(b)
		w.manager.profile()
		steady := w.rest(b)
		w.manager.profile()
		memory := processesOf(b, w.manager.process.PID())
		if err := w.manager.process.Signal(syscall.SIGTERM); err != nil {
			b.Fatal(err)
		}
		<-w.manager.process.Done()
		w.manager = nil
		idle := w.rest(b)

		b.Logf("%d installations in %s: %s; %s", installations, steadyTime, seconds(steady.cost), steady.calls.text(1))
		b.Logf("without the manager: %s; %s", seconds(idle.cost), idle.calls.text(1))
		manager, above := steady.cost[managerProcess], steady.cost[serverProcess]-idle.cost[serverProcess]
		b.Logf("CPU of the manager with its renderers: %s (bar: 1s); of the API server above idle: %s (bar: 2s); peak memory %d MiB",
			manager, above, memory.peak>>20)
		b.ReportMetric(manager.Seconds(), "manager-s")
		b.ReportMetric(above.Seconds(), "apiserver-s-above-idle")
		if writes := steady.calls.writes(); writes > 0 {
			b.Errorf("%d writes where nothing changes", writes)
		}
		if steady.calls["LIST deployments"] == 0 {
			b.Error("nobody looked for drift")
		}
	}
}

// rest measures a time in which nothing is asked for.
func (w *world) rest(b *testing.B) outcome {
	b.Helper()
	return w.measure(b, installations, func() time.Time {
		select {
		case <-time.After(steadyTime):
		case <-b.Context().Done():
		}
		return time.Now()
	})
}
