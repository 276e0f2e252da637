package installing

import (
	"testing"

	"github.com/trellis-addons/trellis/test/bench/bar"
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
func (w *world) reportManager(b *testing.B, ours []outcome, most float64) {
	b.Helper()
	used, memory := medianOf(ours, managerOf), UsageOf(b, w.manager.process.PID())
	b.Logf("CPU of the manager is with its renderers, and the median of %d", len(ours))
	bar.Time(b, "manager-ms/installation", used, most)
	bar.AtMost(b, "manager-MiB-peak", float64(memory.peak>>20), memoryBar)
	bar.None(b, "renderers-MiB-peak", float64(memory.children>>20))
}

// reportRatio prints how our rate compares, median by median and round by round.
func reportRatio(b *testing.B, unit string, ours, theirs []outcome, least float64) {
	b.Helper()
	ratio := medianOf(ours, rateOf) / medianOf(theirs, rateOf)
	var each []float64
	for i := range ours {
		each = append(each, ours[i].rate()/theirs[i].rate())
	}
	b.Logf("%s: %.1f a second, against %.1f; round by round %.2f", unit, medianOf(ours, rateOf), medianOf(theirs, rateOf), each)
	bar.AtLeast(b, unit, ratio, least)
}
