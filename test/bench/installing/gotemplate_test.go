package installing

import (
	"fmt"
	"testing"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// BenchmarkGoTemplate installs an add-on of four objects 200 times, beside a bare client that makes the same writes.
func BenchmarkGoTemplate(b *testing.B) {
	w := newWorld(b)
	if _, err := w.sources.Commit("four", map[string]string{"addon.yaml": addonTemplate}); err != nil {
		b.Fatal(err)
	}
	w.offer(b, "four", &kubermaticv1.Template{Method: kubermaticv1.MethodGoTemplate}, w.gitSource("four"))
	w.startManager(b)
	watching := w.watch(b)
	for b.Loop() {
		w.install(b, watching, "four", names("warm", warmUp))
		w.quiet(b)
		sample, before := names("sample", warmUp), w.calls(b)
		w.install(b, watching, "four", sample)
		w.quiet(b)
		peer := w.newBare(b, sample[0], w.calls(b).since(before), warmUp)
		w.bareRound(b, peer, names("cold", warmUp))

		var ours, theirs []outcome
		for round := range rounds {
			own, other := fmt.Sprintf("ours-%d", round), fmt.Sprintf("bare-%d", round)
			inTurns(round, func() {
				made, came := w.trellis(b, watching, "four", names(own, installations))
				b.Logf("%s; the last was applied %s before it was Ready", made.text("Trellis"), came.ready.Sub(came.applied))
				ours = append(ours, made)
			}, func() {
				made := w.bareRound(b, peer, names(other, installations))
				b.Log(made.text("bare client"))
				theirs = append(theirs, made)
			}, func() { w.quiet(b) })
			w.expectObjects(b, own, installations)
			w.expectObjects(b, other, installations)
		}
		reportRatio(b, "ratio-bare-client", ours, theirs, 0.7)
		w.reportManager(b, ours, 18)
	}
}
