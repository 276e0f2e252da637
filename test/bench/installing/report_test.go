package installing

import (
	"testing"
)

// Bars of issue 8.
const (
	memoryBar = 150 // MiB
)

// medianOf is the median of what each outcome says.
func medianOf(all []outcome, of func(outcome) float64) float64 {
	said := make([]float64, len(all))
	for i, one := range all {
		said[i] = of(one)
	}
	return Median(said)
}

func rateOf(o outcome) float64 { return o.rate() }

func managerOf(o outcome) float64 { return o.cost.per(managerProcess, o.count) }

// reportManager prints what the manager's process costs beside its bars.
func (w *world) reportManager(b *testing.B, ours []outcome, bar float64) {
	b.Helper()
	used, memory := medianOf(ours, managerOf), UsageOf(b, w.manager.process.PID())
	b.Logf("CPU of the manager with its renderers, median of %d: %.1f ms an installation (bar: %.0f)", len(ours), used, bar)
	b.Logf("peak memory of the manager: %d MiB (bar: %d); its renderers together: %d MiB", memory.peak>>20, memoryBar, memory.children>>20)
	b.ReportMetric(used, "manager-ms/installation")
	b.ReportMetric(float64(memory.peak>>20), "manager-MiB-peak")
}

// reportRatio prints how our rate compares, median by median and round by round.
func reportRatio(b *testing.B, unit string, ours, theirs []outcome, bar float64) {
	b.Helper()
	ratio := medianOf(ours, rateOf) / medianOf(theirs, rateOf)
	var each []float64
	for i := range ours {
		each = append(each, ours[i].rate()/theirs[i].rate())
	}
	b.Logf("%s: %.1f a second, against %.1f: %.2f of the rate (bar: at least %.1f); round by round %.2f",
		unit, medianOf(ours, rateOf), medianOf(theirs, rateOf), ratio, bar, each)
	b.ReportMetric(ratio, unit)
}
