package installing

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/bench/bar"
	"github.com/trellis-addons/trellis/test/collector"
	"github.com/trellis-addons/trellis/test/expect"
)

// baselineVariable names a seed manager that was built from another commit, to compare with.
const baselineVariable = "TRELLIS_BASELINE"

// holdTracing has BenchmarkTracing fail above its bar.
var holdTracing = flag.Bool("hold-tracing", false, "fail where traces cost more than their bar")

// pairs is how many rounds each side has: a shared machine differs by more than the bar from one round to the next. Where the bar is held
// and is passed by these, manyPairs decide.
const (
	pairs     = 6
	manyPairs = 18
)

// tracingBar is that of ADR 86, in percent.
const tracingBar = 5

// side is one way to run the manager.
type side struct {
	name, program string
	flags         []string
	cost          []float64
}

// BenchmarkTracing installs with every pass traced and with none, in turns, and with the manager of another commit, if one is named.
// With -hold-tracing it fails when the median of its pairs is above the bar: `make release-check` runs it so.
func BenchmarkTracing(b *testing.B) {
	w, to, program := newWorld(b), collector.Start(b), buildManager(b, b.TempDir())
	if _, err := w.sources.Commit("four", map[string]string{"addon.yaml": addonTemplate}); err != nil {
		b.Fatal(err)
	}
	w.offer(b, "four", &kubermaticv1.Template{Method: kubermaticv1.MethodGoTemplate}, w.gitSource("four"))
	off := &side{name: "off", program: program}
	on := &side{name: "on", program: program, flags: []string{"--tracing-endpoint", to.URL, "--tracing-sampling-ratio", "1"}}
	sides := []*side{off, on}
	if other := os.Getenv(baselineVariable); other != "" {
		sides = append(sides, &side{name: "baseline", program: other})
	}
	watching := w.watch(b)
	for b.Loop() {
		w.inTurn(b, watching, sides, pairs)
		if *holdTracing && Median(extraOf(off, on)) > tracingBar {
			reportSide(b, "tracing-at-first", off, on, tracingBar)
			w.inTurn(b, watching, sides, manyPairs-pairs)
		}
		reportSide(b, "tracing", off, on, tracingBar)
		if extra := Median(extraOf(off, on)); *holdTracing && extra > tracingBar {
			b.Errorf("traces cost %.1f %% of the manager's CPU by the median of %d pairs, %d at most", extra, len(on.cost), tracingBar)
		}
		b.Logf("%.0f spans an installation", float64(len(to.Spans(b)))/float64(len(on.cost)*(installations+warmUp)))
		if len(sides) > 2 {
			reportSide(b, "off-against-baseline", sides[2], off, 0)
		}
	}
}

// inTurn adds that many rounds to each side; another one begins each time.
func (w *world) inTurn(b *testing.B, watching *watcher, sides []*side, more int) {
	b.Helper()
	for range more {
		round := len(sides[0].cost)
		order := slices.Clone(sides)
		for range round % len(sides) {
			order = append(order[1:], order[0])
		}
		for _, side := range order {
			w.priced(b, watching, side, fmt.Sprintf("%s-%d", side.name, round))
		}
	}
}

// priced adds the price of one round to a side.
func (w *world) priced(b *testing.B, watching *watcher, side *side, run string) {
	b.Helper()
	w.startProgram(b, side.program, side.flags...)
	w.install(b, watching, "four", names("warm-"+run, warmUp))
	w.quiet(b)
	before := w.costs(b)
	w.manager.profile()
	w.install(b, watching, "four", names(run, installations))
	w.manager.profile()
	w.quiet(b) // what is sent afterwards is part of the price
	used := w.costs(b).since(before).per(managerProcess, installations)
	side.cost = append(side.cost, used)
	b.Logf("%s: %.2f ms an installation", run, used)
	w.clear(b)
	w.stopManager(b)
}

// extraOf is by how many percent one side costs more than the other in each pair of rounds.
func extraOf(less, more *side) []float64 {
	each := make([]float64, 0, len(less.cost))
	for i := range less.cost {
		each = append(each, 100*(more.cost[i]/less.cost[i]-1))
	}
	return each
}

// reportSide prints by how much one side costs more than another: of the medians, and the median of all rounds.
func reportSide(b *testing.B, unit string, less, more *side, most float64) {
	b.Helper()
	each := slices.Sorted(slices.Values(extraOf(less, more)))
	b.Logf("%s: %.2f ms, against %.2f: %+.1f %% by medians, %+.1f %% by pairs; each %.1f",
		unit, Median(more.cost), Median(less.cost), 100*(Median(more.cost)/Median(less.cost)-1), Median(each), each)
	bar.Time(b, unit+"-%", Median(each), most)
}

// clear removes all installations.
func (w *world) clear(b *testing.B) {
	b.Helper()
	expect.NoError(b, w.seed.DeleteAllOf(b.Context(), &kubermaticv1.AddonInstallation{}, client.InNamespace(clusterNamespace)))
	expect.Eventually(b, patience, func() error {
		var left kubermaticv1.AddonInstallationList
		if err := w.seed.List(b.Context(), &left, client.InNamespace(clusterNamespace)); err != nil {
			return err
		}
		if len(left.Items) > 0 {
			return fmt.Errorf("%d installations are left", len(left.Items))
		}
		return nil
	})
}
