package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/trellis-addons/trellis/test/fleet"
)

// Red when a time, or memory, above its limit leaves the demo green.
func TestWhatTakesTooMuchIsEvaluated(t *testing.T) {
	for _, test := range []struct {
		why  string
		took time.Duration
		peak int64
		want string
	}{
		{"within both", setsLimit, memoryLimit, ""},
		{"too long", setsLimit + time.Second, memoryLimit, "the story of a set: it took 3m1s, limit 3m0s"},
		{"too large", setsLimit, memoryLimit + 1, "memory of all processes"},
	} {
		t.Run(test.why, func(t *testing.T) {
			reported := &story{progress: fleet.NewProgress(io.Discard), bars: []bar{{"the story of a set", test.took, setsLimit}}}
			switch err := reported.evaluate(test.peak); {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("it says %v, want %q", err, test.want)
			}
		})
	}
}
