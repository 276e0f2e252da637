package installing

import (
	"flag"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/bench/bar"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
)

// previous is the program of another commit's seed manager.
var previous = flag.String("former", "", "the seed manager that installs in BenchmarkUpgrade; empty: this one, which then starts again")

// upgradeTime is how long the new manager is watched: its first passes and a look for drift are in it.
const upgradeTime = 90 * time.Second

// BenchmarkUpgrade has a seed manager of another commit install an add-on of each method 100 times, puts this one in its place, and
// counts what it does. It fails unless nothing is rendered, nothing is written to the user cluster, and no status is: test/upgrade has the
// same with charts and both managers, and `make test-long PART=upgrade-last` runs both.
func BenchmarkUpgrade(b *testing.B) {
	w := newWorld(b)
	if _, err := w.sources.Commit("four", map[string]string{"addon.yaml": addonTemplate}); err != nil {
		b.Fatal(err)
	}
	expect.NoError(b, w.sources.Chart(ChartFiles()))
	w.offer(b, "four", &kubermaticv1.Template{Method: kubermaticv1.MethodGoTemplate}, w.gitSource("four"))
	w.offer(b, "chart", &kubermaticv1.Template{Method: kubermaticv1.MethodHelm}, given.Chart(w.sources.ChartsURL, "four", "1.0.0"))
	program := *previous
	if program == "" {
		program = buildManager(b, b.TempDir())
	}
	w.startProgram(b, program, "--drift-interval", "1m")
	watching := w.watch(b)
	for b.Loop() {
		w.install(b, watching, "four", names("template", installations/2))
		w.install(b, watching, "chart", names("chart", installations/2))
		w.expectLooked(b)
		w.calm(b)
		w.stopManager(b)

		made := w.measure(b, installations, func() time.Time {
			w.startManager(b, "--drift-interval", "1m")
			pause(b, upgradeTime)
			return time.Now()
		})
		w.calm(b)
		for name, count := range made.calls {
			if verb, resource, _ := strings.Cut(name, " "); verb != "GET" && verb != "LIST" && resource != "events" {
				b.Errorf("it writes: %d x %s", count, name)
			}
		}
		b.Log(made.text("the new manager"))
		bar.Exactly(b, "writes", float64(made.calls.writes()), 0)
		if made.calls["LIST deployments"] == 0 {
			b.Error("it did not look for drift")
		}
		for _, line := range w.metric(b, "trellis_render_results_total") {
			if !strings.HasSuffix(line, " 0") { // results begin at 0
				b.Errorf("it renders: %s", line)
			}
		}
	}
}

// stopManager ends the manager as its Deployment would.
func (w *world) stopManager(b *testing.B) {
	b.Helper()
	expect.NoError(b, w.manager.process.Signal(syscall.SIGTERM))
	<-w.manager.process.Done()
	w.manager = nil
}

// metric is what the manager says of one of its metrics.
func (w *world) metric(b *testing.B, name string) (lines []string) {
	b.Helper()
	expect.Eventually(b, patience, func() error {
		content, err := fleet.Get(b.Context(), w.manager.metrics)
		if err != nil {
			return err
		}
		if !strings.Contains(string(content), "trellis_installations") {
			return fmt.Errorf("the metrics have no installations")
		}
		for line := range strings.Lines(string(content)) {
			if strings.HasPrefix(line, name) {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		return nil
	})
	return lines
}

// pause lets time pass, unless the benchmark ends.
func pause(b *testing.B, during time.Duration) {
	b.Helper()
	select {
	case <-time.After(during):
	case <-b.Context().Done():
	}
}
