package soak

import (
	"slices"
	"testing"
	"time"
)

// TestWhatGrewIsReported: Red when a manager that holds more of anything passes as one that came to rest, or one that holds a little more does not.
func TestWhatGrewIsReported(t *testing.T) {
	before := usage{heap: 20 << 20, goroutines: 100, files: 40, children: 4, stored: 10}
	for _, test := range []struct {
		what string
		edit func(*usage)
	}{
		{"the heap", func(u *usage) { u.heap = 47 << 20 }},
		{"goroutines", func(u *usage) { u.goroutines = 131 }},
		{"open files", func(u *usage) { u.files = 61 }},
		{"children", func(u *usage) { u.children = 5 }},
		{"files in the store", func(u *usage) { u.stored = 41 }},
	} {
		after := before
		test.edit(&after)
		if grown := before.growth(after); len(grown) != 1 || grown[0][:len(test.what)] != test.what {
			t.Errorf("%s grew, and %q is told", test.what, grown)
		}
	}
	if grown := before.growth(usage{46 << 20, 130, 60, 4, 40}); len(grown) > 0 {
		t.Errorf("a little more is told: %q", grown)
	}
}

// TestWordsOfModes: Red when a word that names nothing is taken, and a siege with no attack passes.
func TestWordsOfModes(t *testing.T) {
	for _, words := range []string{"servers,acts", "acts", "silent,large-values"} {
		if err := areKnown(words); err != nil {
			t.Errorf("%q: %v", words, err)
		}
	}
	for _, words := range []string{"", "server", "silent,", "large-value"} {
		if areKnown(words) == nil {
			t.Errorf("%q is taken", words)
		}
	}
}

// TestFiguresOfRuns: Red when a p99 of few times leaves the slowest out, or a median of turns is that of the worst.
func TestFiguresOfRuns(t *testing.T) {
	times := []time.Duration{1, 2, 3, 4, 50}
	if got := percentile(times, 99); got != 50 {
		t.Errorf("p99 of %v is %d", times, got)
	}
	if got := percentile(times, 50); got != 3 {
		t.Errorf("p50 of %v is %d", times, got)
	}
	if got := percentile(nil, 99); got != 0 {
		t.Errorf("p99 of nothing is %d", got)
	}
	ratios := []float64{1.9, 1.0, 1.1}
	if got := median(ratios); got != 1.1 || !slices.Equal(ratios, []float64{1.9, 1.0, 1.1}) {
		t.Errorf("the median is %g, of %v", got, ratios)
	}
}
