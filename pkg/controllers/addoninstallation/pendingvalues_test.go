package addoninstallation_test

import (
	"context"
	"testing"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/gotemplate"
)

// held renders templates of values once the gate is open.
type held struct{ gate chan struct{} }

func (h held) RenderValues(ctx context.Context, input render.ValuesInput) (map[string]any, error) {
	select {
	case <-h.gate:
		return gotemplate.New().RenderValues(ctx, input)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A slow valuesTemplate holds no worker: with one worker, installations of others become Ready meanwhile, and its own
// once it is rendered. It fails if the keeper waits for values to the end (no patience): the second is not reconciled
// in time.
func TestLongValuesTemplateHoldsNoWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.concurrency = 1
	gate := make(chan struct{})
	w.valuesRenderer = held{gate}
	w.start()
	slow := w.version(offered{version: "1.0.0"})
	slow.ValuesTemplate = "slow: true\n"
	w.publishVersions("slow", kubermaticv1.CatalogueCustom, []kubermaticv1.AddonVersion{slow})
	w.publish("quick", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	waiting := w.install("slow", "")
	w.expectSummary(waiting, "False", kubermaticv1.ReasonRendering, "")
	w.ready(w.install("quick", ""))
	close(gate)
	w.ready(waiting)
}
