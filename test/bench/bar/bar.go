// Package bar prints the figures of benchmarks, each beside its bar.
//
// A benchmark fails on a ratio, a count or a size that misses its bar: these are the same on each machine. A time differs from machine to
// machine, so it is printed beside its bar and fails nothing.
package bar

import (
	"fmt"
	"testing"
)

// AtMost prints a figure that a bar bounds from above, and fails the benchmark where it is higher.
func AtMost(b *testing.B, unit string, figure, most float64) {
	b.Helper()
	hold(b, unit, figure, fmt.Sprintf("at most %.4g", most), figure <= most)
}

// AtLeast prints a figure that a bar bounds from below, and fails the benchmark where it is lower.
func AtLeast(b *testing.B, unit string, figure, least float64) {
	b.Helper()
	hold(b, unit, figure, fmt.Sprintf("at least %.4g", least), figure >= least)
}

// Exactly prints a figure that has to be one number, and fails the benchmark where it is another one.
func Exactly(b *testing.B, unit string, figure, want float64) {
	b.Helper()
	hold(b, unit, figure, fmt.Sprintf("exactly %.4g", want), figure == want)
}

// Time prints a figure that depends on the machine, beside the most that it is meant to be.
func Time(b *testing.B, unit string, figure, most float64) {
	b.Helper()
	verdict := "met"
	if figure > most {
		verdict = "missed; a time fails nothing"
	}
	show(b, unit, figure, fmt.Sprintf("at most %.4g: %s", most, verdict))
}

// Rate prints a rate that depends on the machine, beside the least that it is meant to be.
func Rate(b *testing.B, unit string, figure, least float64) {
	b.Helper()
	verdict := "met"
	if figure < least {
		verdict = "missed; a rate fails nothing"
	}
	show(b, unit, figure, fmt.Sprintf("at least %.4g: %s", least, verdict))
}

// None prints a figure that has no bar.
func None(b *testing.B, unit string, figure float64) {
	b.Helper()
	show(b, unit, figure, "none")
}

func hold(b *testing.B, unit string, figure float64, bar string, isMet bool) {
	b.Helper()
	if isMet {
		show(b, unit, figure, bar+": met")
		return
	}
	show(b, unit, figure, bar+": MISSED")
	b.Errorf("%s is %.4g, and the bar is %s", unit, figure, bar)
}

func show(b *testing.B, unit string, figure float64, bar string) {
	b.Helper()
	b.ReportMetric(figure, unit)
	b.Logf("figure %-32s %10.4g   bar %s", unit, figure, bar)
}
